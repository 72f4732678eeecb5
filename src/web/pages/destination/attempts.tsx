import { outcomeKinds } from '../../../core/delivery/outcome.ts'
import { query, setQuery } from '../../app/address.ts'
import type { AttemptAnswer, DestinationAnswer } from '../../api/routes.ts'
import { Badge } from '../../components/badge.tsx'
import { CopyAsCurl, CopyButton } from '../../components/copy.tsx'
import { MessageLink } from '../../components/text/message-link.tsx'
import { msText, wordsOf } from '../../components/figures.ts'
import { Select, TextField } from '../../components/forms/field.tsx'
import { NoValue } from '../../components/notices.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import type { Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'

/** Of attempts that failed. */
const failures = outcomeKinds.filter((kind) => kind !== 'success' && kind !== 'deferred')
const outcomes = [['', 'any outcome'], ...failures.map((kind) => [kind, wordsOf(kind)] as const)] as const

const periods = [
  ['1h', 'the last hour'],
  ['1d', 'the last day'],
  ['', 'the last 9 days'],
] as const

/** Requests to its URLs that failed, the newest first. */
export function Attempts({ destination: { id, urls } }: { destination: DestinationAnswer }) {
  const value = (name: string) => query.value.get(name) ?? ''
  const status = value('status')
  const asked = {
    query: {
      destination: id,
      url: value('url'),
      outcome: value('outcome'),
      status: /^[1-5]\d\d$/.test(status) ? status : '',
      since: value('since'),
    },
  }
  // Another filter begins at the first page.
  const set = (name: string, to: string) => setQuery({ [name]: to, cursor: null })
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
        <Select label="Time" value={value('since')} choices={periods} change={(to) => set('since', to)} />
        <CopyAsCurl route="GET /attempts" asked={asked} />
      </div>
      <PagedTable
        route="GET /attempts"
        asked={asked}
        what="failed attempts"
        columns={columns}
        keyOf={({ at, deliveryId, urlId, attempt }) => `${at} ${deliveryId} ${urlId} ${attempt}`}
        empty={{
          title: 'No failed attempts.',
          text: 'Successful ones are counted, not listed; with LEDGER=all they are listed too.',
        }}
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
  { head: 'URL', hides: 'medium', cell: ({ urlId }) => <span class="id">{urlId}</span> },
  {
    head: 'Attempt',
    isNumber: true,
    hides: 'narrow',
    cell: ({ attempt }) => attempt ?? <NoValue why="not known" />,
  },
  {
    head: 'Duration',
    isNumber: true,
    hides: 'narrow',
    cell: ({ durationMs }) =>
      durationMs === null ? <NoValue why="no request was sent" /> : msText(durationMs),
  },
  { head: 'Detail', hides: 'medium', cell: ({ detail }) => <span class="foreign">{detail}</span> },
]
