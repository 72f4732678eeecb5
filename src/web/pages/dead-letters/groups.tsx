import type { DeadLetterGroups } from '../../api/routes.ts'
import { may } from '../../app/session.ts'
import { countOf, countText, wordsOf } from '../../components/figures.ts'
import { Empty, Note } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Ago, At } from '../../components/time.tsx'
import { choose } from './filters.ts'
import { filterValues, isChosen } from './filter-fields.tsx'
import { Tick, TickAll } from './tick.tsx'

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
  return may('operator') ? [ticks, ...columns] : columns
}

const nameOf = ({ count, status, destinationId, reason }: Group): string =>
  `${count} × ${status ?? 'no attempt'}${destinationId === null ? '' : ` from ${destinationId}`}, ${wordsOf(reason ?? 'unreadable')}`

const columns: Column<Group>[] = [
  { head: 'Count', isNumber: true, cell: ({ count }) => countText(count) },
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
  { head: 'Reason', hides: 'narrow', cell: ({ reason }) => wordsOf(reason ?? 'unreadable') },
  { head: 'Since', hides: 'narrow', cell: ({ firstAt }) => <At at={firstAt} /> },
  { head: 'Newest', cell: ({ lastAt }) => <Ago at={lastAt} /> },
]
