// Alerts by mail: who gets them is set here, the server and its login are not.
import { useState } from 'preact/hooks'
import { incidentEvents } from '../../../core/operational/alert-kinds.ts'
import { request } from '../../api/request.ts'
import type { AlertsAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { ActionDialog } from '../../components/dialog.tsx'
import { Checkbox, Choice, TextField } from '../../components/fields.tsx'
import { Note, say } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Badge } from '../../components/text.tsx'
import { AlertForm, Answers, useTest } from './alert-test.tsx'

type MailAlert = AlertsAnswer['mails'][number]
export type MailServer = AlertsAnswer['mail']

const addressesIn = (text: string): string[] => text.split(/[\s,;]+/).filter((each) => each !== '')

type Wanted = 'all' | 'trouble' | 'other'

function wantedOf(events: MailAlert['events']): Wanted {
  if (events === null) return 'all'
  const isTrouble =
    events.length === incidentEvents.length && incidentEvents.every((each) => events.includes(each))
  return isTrouble ? 'trouble' : 'other'
}

/** Undefined: as it is. */
const eventsOf = (wanted: Wanted) => ({ all: null, trouble: [...incidentEvents], other: undefined })[wanted]

const wantedChoices = [
  ['all', 'Every event'],
  ['trouble', 'Trouble and its end'],
] as const

interface Drafted {
  name: string
  addresses: string
  wanted: Wanted
}

function DraftFields({
  draft,
  change,
  autofocus = false,
}: {
  draft: Drafted
  change: (draft: Drafted) => void
  autofocus?: boolean
}) {
  const { name, addresses, wanted } = draft
  const choices = wanted === 'other' ? [...wantedChoices, ['other', 'Chosen ones'] as const] : wantedChoices
  return (
    <>
      <TextField
        label="Addresses"
        hint="Of people or lists, separated by commas: ops@example.com, lead@example.com"
        value={addresses}
        change={(text) => change({ ...draft, addresses: text })}
        autofocus={autofocus}
      />
      <TextField label="Name" value={name} change={(text) => change({ ...draft, name: text })} />
      <Choice
        label="Events"
        value={wanted}
        choices={choices}
        choose={(each) => change({ ...draft, wanted: each })}
      />
    </>
  )
}

const newDraft: Drafted = { name: 'Mail', addresses: '', wanted: 'all' }

/** One more that gets mails. */
export function ByMail({ mail, done }: { mail: MailServer; done: () => void }) {
  const [draft, setDraft] = useState(newDraft)
  const to = addressesIn(draft.addresses)
  const save = async () => {
    const events = eventsOf(draft.wanted)
    await request('POST /alerts', { body: { kind: 'mail', to, name: draft.name, events } })
    say(`Operational events are mailed to ${to.join(', ')}`)
    setDraft(newDraft)
    done()
  }
  return (
    <AlertForm given={{ kind: 'mail', to }} isGiven={to.length > 0} canTest={mail !== null} save={save}>
      {mail === null && (
        <Note tone="warn">
          This console has no mail server: set <code>MAIL_SMTP_URL</code> and <code>MAIL_FROM</code>, and
          restart it. Its login is kept nowhere else.
        </Note>
      )}
      <DraftFields draft={draft} change={setDraft} />
    </AlertForm>
  )
}

type Asked = { what: 'change' | 'remove'; alert: MailAlert }

/** Those that there are, each with what can be done to it. */
export function MailAlerts({
  mails,
  mail,
  changed,
}: {
  mails: MailAlert[]
  mail: MailServer
  changed: () => void
}) {
  const [asked, setAsked] = useState<Asked | null>(null)
  const { state, run } = useTest()
  const close = () => setAsked(null)
  const actions: Column<MailAlert> = {
    head: 'Actions',
    moves: 'narrow',
    cell: (alert) => (
      <div class="row-actions">
        <button
          type="button"
          class="button button-small"
          aria-label={`Test ${alert.id}`}
          disabled={mail === null}
          onClick={() => run({ kind: 'mail', id: alert.id })}
        >
          Test
        </button>
        {(['change', 'remove'] as const).map((what) => (
          <button
            key={what}
            type="button"
            class="button button-small"
            aria-label={`${what === 'change' ? 'Change' : 'Remove'} ${alert.id}`}
            onClick={() => setAsked({ what, alert })}
          >
            {what === 'change' ? 'Change' : 'Remove'}
          </button>
        ))}
      </div>
    ),
  }
  return (
    <>
      <Table
        label="Who is told by mail"
        rows={mails}
        keyOf={({ id }) => id}
        columns={[...columnsOf(mail), ...(may('admin') ? [actions] : [])]}
      />
      <Answers state={state} />
      {asked?.what === 'change' && <Change alert={asked.alert} close={close} done={changed} />}
      {asked?.what === 'remove' && <Remove alert={asked.alert} close={close} done={changed} />}
    </>
  )
}

const columnsOf = (mail: MailServer): Column<MailAlert>[] => [
  {
    head: 'By mail',
    isName: true,
    cell: ({ id, name }) => (
      <>
        <span class="foreign">{name}</span> <span class="id faint">{id}</span>
      </>
    ),
  },
  {
    head: 'To',
    moves: 'narrow',
    cell: ({ to }) => <span class="foreign">{to!.join(', ')}</span>,
  },
  {
    head: 'Events',
    moves: 'narrow',
    cell: ({ events }) =>
      ({ all: 'all', trouble: 'trouble and its end', other: events?.join(', ') })[wantedOf(events)],
  },
  {
    head: 'State',
    cell: ({ enabled }) => {
      if (!enabled) return <Badge tone="plain" text="disabled" />
      return mail === null ? <Badge tone="bad" text="no mail server" /> : <Badge tone="good" text="enabled" />
    },
  },
]

interface DialogProps {
  alert: MailAlert
  close: () => void
  done: () => void
}

function Change({ alert, close, done }: DialogProps) {
  const { id, name, events } = alert
  const to = alert.to!
  const [draft, setDraft] = useState<Drafted>({ name, addresses: to.join(', '), wanted: wantedOf(events) })
  const [enabled, setEnabled] = useState(alert.enabled)
  const change = async () => {
    const addresses = addressesIn(draft.addresses)
    // Nothing else: somebody may have changed the rest since the dialog was opened.
    const body = {
      ...(draft.name !== name && { name: draft.name }),
      ...(addresses.join() !== to.join() && { to: addresses }),
      ...(draft.wanted !== wantedOf(events) && { events: eventsOf(draft.wanted) }),
      ...(enabled !== alert.enabled && { enabled }),
    }
    if (Object.keys(body).length > 0) await request('PATCH /alerts/mail/{id}', { id, body })
    done()
  }
  return (
    <ActionDialog title={`Change alert “${id}”`} action="Save" act={change} close={close}>
      <DraftFields draft={draft} change={setDraft} autofocus />
      <Checkbox label="Enabled" checked={enabled} change={setEnabled} />
    </ActionDialog>
  )
}

function Remove({ alert: { id, to }, close, done }: DialogProps) {
  const remove = async () => {
    await request('DELETE /alerts/mail/{id}', { id })
    say(`Alert ${id} is removed`)
    done()
  }
  return (
    <ActionDialog
      title={`Remove alert “${id}”?`}
      action={`Remove ${id}`}
      isDestructive
      act={remove}
      close={close}
    >
      <p>
        <span class="foreign">{to!.join(', ')}</span> will get no more operational events by it.
      </p>
    </ActionDialog>
  )
}
