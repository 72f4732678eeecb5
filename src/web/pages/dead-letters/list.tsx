import { pathTo } from '../../../console/page-paths.ts'
import type { DeadLetterSummary } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { wordsOf } from '../../components/figures.ts'
import { MessageLink } from '../../components/text/message-link.tsx'
import { NoValue } from '../../components/notices.tsx'
import { PagedTable } from '../../components/paged-table.tsx'
import type { Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'
import { chosenFilters } from './filters.ts'
import { Tick } from './tick.tsx'

/** Single dead letters, the newest first. */
export function List({
  selected,
  select,
}: {
  selected: ReadonlySet<string>
  select: (ids: ReadonlySet<string>) => void
}) {
  const ticks: Column<DeadLetterSummary> = {
    head: 'Select',
    headCell: <span class="hidden">Select</span>,
    cell: ({ id }) => (
      <Tick label={`Select dead letter ${id}`} value={id} selected={selected} select={select} />
    ),
  }
  return (
    <PagedTable
      route="GET /dead-letters"
      asked={{ query: { ...chosenFilters() } }}
      what="dead letters"
      columns={may('operator') ? [ticks, ...columns] : columns}
      keyOf={({ id }) => id}
      empty={{ title: 'No dead letter matches.' }}
    />
  )
}

const columns: Column<DeadLetterSummary>[] = [
  { head: 'Failed', cell: ({ failedAt }) => <Ago at={failedAt} /> },
  {
    head: 'Id',
    isName: true,
    cell: ({ id }) =>
      may('operator') ? (
        <a class="id id-short" href={pathTo('deadLetter', { id })}>
          {id}
        </a>
      ) : (
        <span class="id id-short">{id}</span>
      ),
  },
  {
    head: 'Destination',
    cell: ({ destinationId }) =>
      destinationId === null ? (
        <NoValue why="It never became a delivery" />
      ) : (
        <a href={pathTo('destination', { id: destinationId })}>{destinationId}</a>
      ),
  },
  { head: 'Reason', hides: 'narrow', cell: ({ reason }) => wordsOf(reason ?? 'unreadable') },
  {
    head: 'Last status',
    hides: 'narrow',
    cell: ({ status }) => (status === null ? <NoValue why="No attempt" /> : wordsOf(String(status))),
  },
  {
    head: 'Attempts',
    isNumber: true,
    hides: 'medium',
    cell: ({ attempts }) => attempts ?? <NoValue why="No attempt" />,
  },
  {
    head: 'Call',
    hides: 'narrow',
    cell: ({ messageId }) =>
      messageId === null ? <NoValue why="Not known" /> : <MessageLink messageId={messageId} />,
  },
]
