import { outcomeKinds } from '../../../core/delivery/outcome.ts'
import type { AttemptAnswer, DestinationAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { Select, TextField } from '../../components/fields.tsx'
import { msText, wordsOf } from '../../components/figures.ts'
import { LateField } from '../../components/late-field.tsx'
import { NoValue } from '../../components/notices.tsx'
import { PeriodFields } from '../../components/period.tsx'
import { PagedTable, type Column } from '../../components/table.tsx'
import { Badge, CopyAsCurl, CopyButton, MessageLink } from '../../components/text.tsx'
import { Ago } from '../../components/time.tsx'
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

/** Requests to its URLs, the newest first: those that failed, with LEDGER=all the others too. */
export function Attempts({ destination: { id, urls } }: { destination: DestinationAnswer }) {
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
  const choose = (changes: Record<string, string | null>) => setQuery({ ...changes, cursor: null })
  const set = (name: string, to: string) => choose({ [name]: to })
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
      <PagedTable
        route="GET /attempts"
        asked={asked}
        what="attempts"
        columns={columns}
        keyOf={({ at, deliveryId, urlId, attempt }) => `${at} ${deliveryId} ${urlId} ${attempt}`}
        empty={{
          title: 'No attempt is listed that matches.',
          text: 'Successful ones are counted, not listed; with LEDGER=all they are listed too.',
        }}
        // Of whose calls they are is looked up, which takes much.
        follows={asked.query.event === '' && asked.query.user === '' ? 'first' : 'none'}
      />
    </>
  )
}

const columns: Column<AttemptAnswer>[] = [
  { head: 'When', cell: ({ at }) => <Ago at={at} /> },
  {
    head: 'Outcome',
    cell: ({ outcome, status }) => (
      <Badge
        tone={outcome === 'success' ? 'good' : 'bad'}
        text={status === null ? wordsOf(outcome) : `${status}${outcome === 'gone' ? ' gone' : ''}`}
        title={wordsOf(outcome)}
      />
    ),
  },
  {
    head: 'Call',
    isName: true,
    cell: ({ messageId }) => (
      <span class="with-button">
        <MessageLink messageId={messageId} />
        <CopyButton text={messageId} what="the messageId" />
      </span>
    ),
  },
  { head: 'URL', moves: 'medium', cell: ({ urlId }) => <span class="id">{urlId}</span> },
  {
    head: 'Attempt',
    isNumber: true,
    moves: 'narrow',
    cell: ({ attempt }) => attempt ?? <NoValue why="not known" />,
  },
  {
    head: 'Duration',
    isNumber: true,
    moves: 'narrow',
    cell: ({ durationMs }) =>
      durationMs === null ? <NoValue why="no request was sent" /> : msText(durationMs),
  },
  { head: 'Detail', moves: 'medium', cell: ({ detail }) => <span class="foreign">{detail}</span> },
]
