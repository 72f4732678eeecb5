import { pathTo } from '../../../console/page-paths.ts'
import type { DeadLetterSummary, DeadLetterGroups } from '../../api/routes.ts'
import { useLive } from '../../api/live.ts'
import { query } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { wordsOf, countOf, countText } from '../../components/figures.ts'
import { NoValue, Empty, Note } from '../../components/notices.tsx'
import { PagedTable, type Column, Table } from '../../components/table.tsx'
import { MessageLink } from '../../components/text.tsx'
import { Ago, At } from '../../components/time.tsx'
import { SentAgainText } from './sent-again.tsx'
import { filterValues, isChosen, chosenFilters, choose } from './filters.ts'

const pageSize = 50

/** Single dead letters, the newest first. */
export function List({
  selected,
  select,
}: {
  selected: ReadonlySet<string>
  select: (ids: ReadonlySet<string>) => void
}) {
  const asked = { ...chosenFilters() }
  const cursor = query.value.get('cursor')
  // By itself: the index that knows may have much to read first.
  const marked = useLive(
    'GET /dead-letters',
    { query: { ...asked, limit: pageSize, cursor, replays: true } },
    cursor === null ? 15_000 : 0,
  )
  const marks = marked.data && new Map(marked.data.data.map(({ id, sentAgain }) => [id, sentAgain ?? null]))
  const replayed: Column<DeadLetterSummary> = {
    head: 'Sent again',
    moves: 'narrow',
    cell: ({ id }) => {
      const mark = marks?.get(id)
      if (mark === undefined) return <span class="faint">…</span>
      return mark === null ? <NoValue why="No replay sent it again" /> : <SentAgainText sent={mark} />
    },
  }
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
      asked={{ query: asked }}
      limit={pageSize}
      what="dead letters"
      columns={may('operator') ? [ticks, ...columns, replayed] : [...columns, replayed]}
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
  { head: 'Reason', moves: 'narrow', cell: ({ reason }) => wordsOf(reason ?? 'unreadable') },
  {
    head: 'Last status',
    moves: 'narrow',
    cell: ({ status }) => (status === null ? <NoValue why="No attempt" /> : wordsOf(String(status))),
  },
  {
    head: 'Attempts',
    isNumber: true,
    moves: 'medium',
    cell: ({ attempts }) => attempts ?? <NoValue why="No attempt" />,
  },
  {
    head: 'Call',
    moves: 'narrow',
    cell: ({ messageId }) =>
      messageId === null ? <NoValue why="Not known" /> : <MessageLink messageId={messageId} />,
  },
]

export type Group = DeadLetterGroups['groups'][number]

export const groupKey = (group: Group): string => JSON.stringify(Object.values(filterValues(group)))

/** What failed alike, the largest group first. */
export function Groups({
  found,
  selected,
  select,
}: {
  found: DeadLetterGroups
  selected: ReadonlySet<string>
  select: (keys: ReadonlySet<string>) => void
}) {
  const shown = found.groups.filter(isChosen)
  if (found.count === 0)
    return (
      <Empty title="Nothing failed finally in this time.">
        <p>A delivery becomes a dead letter when no attempt is left, or none could help.</p>
      </Empty>
    )
  if (shown.length === 0) return <Empty title="No dead letter matches these filters." />
  return (
    <>
      {found.others > 0 && (
        <Note>
          {countOf(found.others, 'dead letter')} of further kinds are not in this table; filters show them.
        </Note>
      )}
      <Table
        label="Groups of dead letters"
        columns={columnsFor(shown, selected, select)}
        rows={shown}
        keyOf={groupKey}
      />
    </>
  )
}

function columnsFor(
  shown: readonly Group[],
  selected: ReadonlySet<string>,
  select: (keys: ReadonlySet<string>) => void,
): Column<Group>[] {
  const ticks: Column<Group> = {
    head: 'Select',
    headCell: <TickAll what="groups" keys={shown.map(groupKey)} selected={selected} select={select} />,
    cell: (group) => (
      <Tick label={`Select ${nameOf(group)}`} value={groupKey(group)} selected={selected} select={select} />
    ),
  }
  return may('operator') ? [ticks, ...groupColumns] : groupColumns
}

const nameOf = ({ count, status, destinationId, reason }: Group): string =>
  `${count} × ${status ?? 'no attempt'}${destinationId === null ? '' : ` from ${destinationId}`}, ${wordsOf(reason ?? 'unreadable')}`

const groupColumns: Column<Group>[] = [
  { head: 'Count', isNumber: true, cell: ({ count }) => countText(count) },
  {
    head: 'Done since',
    isNumber: true,
    moves: 'narrow',
    cell: ({ settled = 0 }) =>
      settled === 0 ? <NoValue why="None was delivered since, as far as is known" /> : countText(settled),
  },
  {
    head: 'What failed',
    isName: true,
    cell: (group) => (
      <button type="button" class="link" onClick={() => choose(filterValues(group))}>
        {group.status === null ? 'No attempt' : wordsOf(String(group.status))}
        {group.destinationId !== null && (
          <>
            {' '}
            from <span class="foreign">{group.destinationId}</span>
          </>
        )}
      </button>
    ),
  },
  { head: 'Reason', moves: 'narrow', cell: ({ reason }) => wordsOf(reason ?? 'unreadable') },
  { head: 'Since', moves: 'narrow', cell: ({ firstAt }) => <At at={firstAt} /> },
  { head: 'Newest', cell: ({ lastAt }) => <Ago at={lastAt} /> },
]

type Keys = ReadonlySet<string>

/** Selects a row of a table. */
export function Tick({
  label,
  value,
  selected,
  select,
}: {
  label: string
  value: string
  selected: Keys
  select: (keys: Keys) => void
}) {
  return (
    <input
      type="checkbox"
      class="tick"
      aria-label={label}
      checked={selected.has(value)}
      onChange={(event) => {
        const keys = new Set(selected)
        if (event.currentTarget.checked) keys.add(value)
        else keys.delete(value)
        select(keys)
      }}
    />
  )
}

/** Selects all rows of a table, or none. */
export function TickAll({
  what,
  keys,
  selected,
  select,
}: {
  what: string
  keys: readonly string[]
  selected: Keys
  select: (keys: Keys) => void
}) {
  return (
    <input
      type="checkbox"
      class="tick"
      aria-label={`Select all ${what}`}
      checked={keys.length > 0 && keys.every((key) => selected.has(key))}
      onChange={(event) => select(new Set(event.currentTarget.checked ? keys : []))}
    />
  )
}
