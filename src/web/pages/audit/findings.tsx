import type { VerdictAnswer } from '../../api/routes.ts'
import { Badge } from '../../components/badge.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { NoValue, Note } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Ago } from '../../components/time.tsx'

type Fault = VerdictAnswer['faults'][number]
type Copy = VerdictAnswer['copies'][number]
type Partition = VerdictAnswer['partitions'][number]

const maxRows = 200
const place = ({ topic, partition }: { topic: string; partition: number }) => `${topic}/${partition}`

/** What is wrong, named by partition and offsets. */
export function Faults({ faults }: { faults: readonly Fault[] }) {
  if (faults.length === 0) return null
  return (
    <section class="section">
      <div class="section-head">
        <h2>What is not accounted for</h2>
        {faults.length > maxRows && <p>{`The first ${maxRows} of ${countText(faults.length)}`}</p>}
      </div>
      <Table
        label="What is not accounted for"
        columns={faultColumns}
        rows={faults.slice(0, maxRows)}
        keyOf={(fault) => JSON.stringify(fault)}
      />
    </section>
  )
}

const kinds: Record<Fault['kind'], string> = {
  gap: 'gap',
  overlap: 'overlap',
  unreadable: 'unreadable tally',
  records: 'records differ',
  retries: 'retries differ',
  dead_letters: 'dead letters differ',
}

const faultColumns: Column<Fault>[] = [
  { head: 'What', cell: ({ kind }) => <Badge tone="bad" text={kinds[kind]} /> },
  { head: 'Partition', isName: true, cell: (fault) => <span class="id">{place(fault)}</span> },
  {
    head: 'Offsets',
    isNumber: true,
    cell: ({ first, last }) =>
      first === null ? (
        <NoValue why="It is not about single offsets" />
      ) : last === null ? (
        `${countText(first)} and on`
      ) : (
        `${countText(first)} to ${countText(last)}`
      ),
  },
  {
    head: 'Destination',
    cell: ({ destinationId }) =>
      destinationId === null ? <NoValue why="Of all" /> : <span class="id">{destinationId}</span>,
  },
  { head: 'Why', cell: ({ why }) => <span class="foreign">{why}</span> },
]

/** What a crash or a rebalance made twice: accounted for, but a receiver may have had it twice. */
export function Copies({ copies, count }: { copies: readonly Copy[]; count: number }) {
  if (count === 0) return null
  const shown = copies.slice(0, maxRows)
  return (
    <details class="section">
      <summary>{countOf(count, 'record was', 'records were')} made twice by a crash or a rebalance</summary>
      {shown.length < count && <p class="hint">{`The first ${shown.length} are shown.`}</p>}
      <Table
        label="Made twice"
        columns={copyColumns}
        rows={shown}
        keyOf={(each) => `${place(each)}/${each.offset}`}
      />
    </details>
  )
}

const copyColumns: Column<Copy>[] = [
  {
    head: 'Record',
    isName: true,
    cell: (copy) => <span class="id">{`${place(copy)} at ${copy.offset}`}</span>,
  },
  {
    head: 'Delivery',
    cell: ({ deliveryId }) =>
      deliveryId === null ? <NoValue why="No delivery" /> : <span class="id">{deliveryId}</span>,
  },
  {
    head: 'Made from',
    cell: ({ from }) =>
      from === null ? (
        <NoValue why="Not known" />
      ) : (
        <span class="id">{`${place(from)} at ${from.offset}`}</span>
      ),
  },
]

/** How far the proof reaches. */
export function Partitions({ partitions }: { partitions: readonly Partition[] }) {
  const audited = partitions.filter(({ tallies }) => tallies > 0)
  const lost = partitions.reduce((sum, each) => sum + each.lost, 0)
  return (
    <section class="section">
      {lost > 0 && (
        <Note tone="warn">
          {`Retention removed ${countOf(lost, 'record')} before they could be delivered; the table below says where.`}
        </Note>
      )}
      <details open={lost > 0}>
        <summary>
          {`How far it reaches: ${countOf(audited.length, 'partition')} with entries in the ledger`}
        </summary>
        {audited.length > 0 && (
          <Table label="Audited partitions" columns={partitionColumns} rows={audited} keyOf={place} />
        )}
      </details>
    </section>
  )
}

const partitionColumns: Column<Partition>[] = [
  { head: 'Partition', isName: true, cell: (each) => <span class="id">{place(each)}</span> },
  {
    head: 'Since',
    cell: ({ since }) => (since === null ? <NoValue why="No tally" /> : <Ago at={since} />),
  },
  { head: 'From', isNumber: true, hides: 'narrow', cell: ({ from }) => countText(from) },
  { head: 'To', isNumber: true, hides: 'narrow', cell: ({ to }) => countText(to) },
  { head: 'Records', isNumber: true, cell: ({ records }) => countText(records) },
  {
    head: 'Lost',
    isNumber: true,
    cell: ({ lost }) => <span class={lost === 0 ? 'faint' : 'is-bad'}>{countText(lost)}</span>,
  },
  { head: 'Tallies', isNumber: true, hides: 'narrow', cell: ({ tallies }) => countText(tallies) },
]
