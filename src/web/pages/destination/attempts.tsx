import { useRef } from 'preact/hooks'
import { outcomeKinds } from '../../../core/delivery/outcome.ts'
import type { AttemptAnswer, DestinationAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { Select, TextField } from '../../components/fields.tsx'
import { absoluteText, msText, remarkOf, wordsOf } from '../../components/figures.ts'
import { LateField } from '../../components/late-field.tsx'
import { Lazy } from '../../components/lazy.tsx'
import { NoValue } from '../../components/notices.tsx'
import { PeriodFields } from '../../components/period.tsx'
import { PageTable, usePage, type Column } from '../../components/table.tsx'
import { CopyAsCurl, MessageLink } from '../../components/text.tsx'
import { AttemptBadge } from './attempt-badge.tsx'
import { useCallsOf, type CallOfAttempt } from './attempt-calls.ts'
import { shownPeriod } from './period.ts'

const failures = outcomeKinds.filter((kind) => kind !== 'success' && kind !== 'deferred')
const outcomes = [
  ['', 'any outcome'],
  ['failed', 'failed'],
  ['success', 'success'],
  ...failures.map((kind) => [kind, wordsOf(kind)] as const),
] as const

const periods = [
  ['1h', 'The last hour'],
  ['1d', 'The last day'],
  ['', 'The last 9 days'],
] as const

// A script of its own: only who opens an attempt wants it.
const panel = () => import('./attempt-panel.tsx').then(({ AttemptPanel }) => AttemptPanel)

const keyOf = ({ at, deliveryId, urlId, attempt }: AttemptAnswer) => `${at} ${deliveryId} ${urlId} ${attempt}`

/** Requests to its URLs, the newest first: those that failed, with LEDGER=all the others too. Beside them the one that was opened. */
export function Attempts({ destination }: { destination: DestinationAnswer }) {
  const { id, urls } = destination
  const value = (name: string) => query.value.get(name) ?? ''
  const status = value('status')
  // Dragged out of a plot of its activity.
  const { range } = shownPeriod()
  const since = range && value('since') === '' ? new Date(range.from).toISOString() : value('since')
  const asked = {
    query: {
      destination: id,
      url: value('url'),
      outcome: value('outcome'),
      status: /^[1-5]\d\d$/.test(status) ? status : '',
      event: may('operator') ? value('event') : '',
      user: may('operator') ? value('user') : '',
      since,
      until: value('until'),
    },
  }
  // Another filter begins at the first page.
  const choose = (changes: Record<string, string | null>) =>
    setQuery({ ...changes, cursor: null, attempt: null })
  const set = (name: string, to: string) => choose({ [name]: to })
  // Of whose calls they are is looked up, which takes much.
  const follows = asked.query.event === '' && asked.query.user === '' ? 'first' : 'none'
  const live = usePage('GET /attempts', { asked, follows })
  const listed = live.data?.data ?? []
  const opened = useOpened(listed)
  const close = () => {
    setQuery({ attempt: null })
    document.querySelector<HTMLElement>('.opens[aria-expanded=true]')?.focus()
  }
  const callOf = useCallsOf(
    may('operator') ? listed.map(({ messageId }) => messageId) : [],
    JSON.stringify([asked, query.value.get('cursor')]),
  )
  const columns = [
    ...common.slice(0, 2),
    ...(may('operator') ? ofCall(callOf) : []),
    callColumn,
    ...(urls.length > 1 ? [urlColumn] : []),
    ...common.slice(2),
  ]
  return (
    <>
      <div class="filters">
        {urls.length > 1 && (
          <Select
            label="URL"
            value={value('url')}
            choices={[['', 'any URL'], ...urls.map((each) => [each.id, each.url] as const)]}
            change={(to) => set('url', to)}
          />
        )}
        <Select
          label="Outcome"
          value={value('outcome')}
          choices={outcomes}
          change={(to) => set('outcome', to)}
        />
        <TextField
          label="Status"
          value={status}
          placeholder="such as 503"
          change={(to) => set('status', to)}
        />
        {may('operator') && (
          <>
            <LateField label="Event, exactly" value={value('event')} change={(to) => set('event', to)} />
            <LateField label="User" value={value('user')} change={(to) => set('user', to)} />
          </>
        )}
        <PeriodFields
          label="Time"
          since={since}
          until={value('until')}
          periods={periods}
          choose={(period) => choose({ ...period, window: null })}
        />
        <CopyAsCurl route="GET /attempts" asked={asked} />
      </div>
      <div class={opened ? 'with-panel' : ''}>
        <PageTable<'GET /attempts'>
          live={live}
          what="attempts"
          columns={columns}
          keyOf={keyOf}
          empty={{
            title: 'No attempt is listed that matches.',
            text: 'Successful ones are counted, not listed; with LEDGER=all they are listed too.',
          }}
        />
        {opened && (
          <Lazy
            key={keyOf(opened)}
            load={panel}
            what="the attempt"
            props={{ attempt: opened, destination, close }}
          />
        )}
      </div>
    </>
  )
}

/** The one that the address names; while it is open it stays, also when new ones push it from its page. */
function useOpened(listed: readonly AttemptAnswer[]): AttemptAnswer | null {
  const key = query.value.get('attempt')
  const opened = useRef<AttemptAnswer | null>(null)
  const found = listed.find((each) => keyOf(each) === key)
  if (found) opened.current = found
  return opened.current && keyOf(opened.current) === key ? opened.current : null
}

/** Its time to the millisecond opens it: in a log, times are compared. */
function Opener({ attempt }: { attempt: AttemptAnswer }) {
  const [key, text] = [keyOf(attempt), absoluteText(Date.parse(attempt.at))]
  const [day, time] = [text.slice(0, 10), text.slice(11, 23)]
  const isOpen = query.value.get('attempt') === key
  return (
    <button
      type="button"
      class="opens numbers"
      aria-expanded={isOpen}
      aria-label={`Attempt of ${text}`}
      title={text}
      onClick={() => setQuery({ attempt: isOpen ? null : key }, { replace: false })}
    >
      {day === absoluteText(Date.now()).slice(0, 10) ? time : `${day.slice(5)} ${time}`}
    </button>
  )
}

const common: Column<AttemptAnswer>[] = [
  { head: 'When', isName: true, cell: (attempt) => <Opener attempt={attempt} /> },
  { head: 'Outcome', cell: (attempt) => <AttemptBadge attempt={attempt} /> },
  {
    head: 'Attempt',
    isNumber: true,
    moves: 'narrow',
    cell: ({ attempt }) => attempt ?? <NoValue why="not known" />,
  },
  {
    head: 'Duration',
    isNumber: true,
    cell: ({ durationMs }) =>
      durationMs === null ? <NoValue why="no request was sent" /> : msText(durationMs),
  },
]

const callColumn: Column<AttemptAnswer> = {
  head: 'Call',
  moves: 'medium',
  cell: (attempt) => (
    <div class="attempt-call">
      <MessageLink messageId={attempt.messageId} />
      {remarkOf(attempt) !== null && <span class="foreign cut faint">{remarkOf(attempt)}</span>}
    </div>
  ),
}

/** What happened, and to whom. Their width does not change by what is found. */
const ofCall = (callOf: (messageId: string) => CallOfAttempt | null | undefined): Column<AttemptAnswer>[] => {
  const shown = (messageId: string, text: (call: CallOfAttempt) => string | null) => {
    const call = callOf(messageId)
    if (call === undefined) return <span class="faint attempt-of">…</span>
    const found = call && text(call)
    return found === null ? (
      <span class="attempt-of">
        <NoValue why={call === null ? 'not known any more' : 'none'} />
      </span>
    ) : (
      <span class="foreign cut attempt-of" title={found}>
        {found}
      </span>
    )
  }
  return [
    {
      head: 'Event',
      moves: 'narrow',
      cell: ({ messageId }) => shown(messageId, ({ event, name, type }) => event ?? name ?? type),
    },
    {
      head: 'User',
      moves: 'narrow',
      cell: ({ messageId }) => shown(messageId, ({ userId, anonymousId }) => userId ?? anonymousId),
    },
  ]
}

const urlColumn: Column<AttemptAnswer> = {
  head: 'URL',
  moves: 'medium',
  cell: ({ urlId }) => <span class="id">{urlId}</span>,
}
