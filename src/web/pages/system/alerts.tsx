import { useState } from 'preact/hooks'
import { pathTo } from '../../../console/page-paths.ts'
import { alertKindNames, alertKinds, type AlertKind } from '../../../core/operational/alert-kinds.ts'
import { useLive } from '../../api/live.ts'
import { request } from '../../api/request.ts'
import type { AlertsAnswer } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { Choice, TextField } from '../../components/fields.tsx'
import { Empty, say } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Badge } from '../../components/text.tsx'
import { Loaded } from '../../components/views.tsx'
import { AlertForm } from './alert-test.tsx'
import { ByMail, MailAlerts, type MailServer } from './mail-alerts.tsx'
import { SystemTabs } from './system-tabs.tsx'

type Told = AlertsAnswer['destinations'][number]

/** Who is told of operational events, and one more to be told. */
export function Alerts() {
  const live = useLive('GET /alerts', {}, 10_000)
  return (
    <>
      <PageTitle title="Alerts" curl={{ route: 'GET /alerts' }} />
      <SystemTabs />
      <p class="lead">
        An endpoint that is down, deliveries that fail, an audit that finds a gap: Postrider tells who is
        named here, at most once a minute for each cause, and when it is over.
      </p>
      <Loaded live={live} what="alerts">
        {({ destinations, mails, mail }) => (
          <>
            <ToldNow destinations={destinations} mails={mails} mail={mail} changed={live.reload} />
            {may('admin') && <Add mail={mail} done={live.reload} />}
          </>
        )}
      </Loaded>
    </>
  )
}

function ToldNow({
  destinations,
  mails,
  mail,
  changed,
}: {
  destinations: Told[]
  mails: Told[]
  mail: MailServer
  changed: () => void
}) {
  const hasMailTo = mail !== null && mail.to.length > 0
  return (
    <section class="section" aria-labelledby="told">
      <div class="section-head">
        <h2 id="told">Who is told</h2>
      </div>
      {destinations.length === 0 && mails.length === 0 && !hasMailTo && (
        <Empty title="Nobody is told: what happens is seen by who looks at this console." />
      )}
      {destinations.length > 0 && (
        <Table
          label="Destinations that are told"
          rows={destinations}
          keyOf={({ id }) => id}
          columns={columns}
        />
      )}
      {mails.length > 0 && <MailAlerts mails={mails} mail={mail} changed={changed} />}
      {hasMailTo && (
        <p>
          By mail also {mail.to.join(', ')}, from <code>MAIL_TO</code>.
        </p>
      )}
      {mail && (mails.length > 0 || hasMailTo) && (
        <p class="faint">
          Mails come from {mail.from} by <span class="id">{mail.server}</span>
          {mail.waiting !== null && mail.waiting > 0 && `: ${mail.waiting} are still to be sent`}
        </p>
      )}
    </section>
  )
}

const columns: Column<Told>[] = [
  {
    head: 'Name',
    isName: true,
    cell: ({ id, name }) => <a href={pathTo('destination', { id })}>{name}</a>,
  },
  { head: 'Host', cell: ({ hosts }) => <span class="id">{hosts.join(', ')}</span> },
  {
    head: 'Events',
    moves: 'narrow',
    cell: ({ events }) => (events === null ? 'all' : events.join(', ')),
  },
  {
    head: 'State',
    cell: ({ enabled }) => (
      <Badge tone={enabled ? 'good' : 'plain'} text={enabled ? 'enabled' : 'disabled'} />
    ),
  },
]

const choices = [
  ...alertKindNames.map((kind) => [kind, alertKinds[kind].name] as const),
  ['mail', 'Mail'] as const,
]

function Add({ mail, done }: { mail: MailServer; done: () => void }) {
  const [kind, setKind] = useState<AlertKind | 'mail'>('slack')
  return (
    <section class="section" aria-labelledby="add-alert">
      <div class="section-head">
        <h2 id="add-alert">Tell somebody</h2>
      </div>
      <Choice label="By" value={kind} choices={choices} choose={setKind} />
      {kind === 'mail' ? (
        <ByMail mail={mail} done={done} />
      ) : (
        <ByService key={kind} kind={kind} done={done} />
      )}
    </section>
  )
}

function ByService({ kind, done }: { kind: AlertKind; done: () => void }) {
  const { needs, label, hint, name } = alertKinds[kind]
  const [value, setValue] = useState('')
  const given = { kind, [needs]: value.trim() }
  const save = async () => {
    await request('POST /alerts', { body: given })
    say(`Operational events are sent to ${name}`)
    setValue('')
    done()
  }
  return (
    <AlertForm given={given} isGiven={value.trim() !== ''} save={save}>
      <TextField label={label} hint={hint} value={value} change={setValue} />
    </AlertForm>
  )
}
