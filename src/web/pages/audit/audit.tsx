import { pathTo } from '../../../console/page-paths.ts'
import type { VerdictAnswer } from '../../api/routes.ts'
import { query, setQuery } from '../../app/address.ts'
import { may } from '../../app/session.ts'
import { PageTitle } from '../../app/shell.tsx'
import { Choice } from '../../components/fields.tsx'
import { countOf, countText } from '../../components/figures.ts'
import { Failure, Empty, Note, Progress, NoValue } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'
import { Badge } from '../../components/text.tsx'
import { Ago, At } from '../../components/time.tsx'
import { Loaded } from '../../components/views.tsx'
import { useAuditRun, verdictText } from './run.ts'

const periods = [
  ['', 'Everything'],
  ['1d', 'Last 24 hours'],
  ['1h', 'Last hour'],
] as const
type Period = (typeof periods)[number][0]

/** The last verdict on whether every call is accounted for, and a new one on request. */
export function Audit() {
  const given = query.value.get('since') ?? ''
  const since: Period = periods.find(([period]) => period === given)?.[0] ?? ''
  const run = useAuditRun()
  return (
    <>
      <PageTitle title="Audit" curl={{ route: 'GET /audit' }} />
      <p class="lead">
        An audit reads Kafka and proves, or disproves, that every call is accounted for: delivered, waiting
        for a retry, a dead letter, skipped, erased or held.
      </p>
      {may('operator') && (
        <div class="filters">
          <Choice
            label="What is audited"
            value={since}
            choices={periods}
            choose={(period) => setQuery({ since: period })}
          />
          {run.progress === null ? (
            <button type="button" class="button button-primary" onClick={() => run.start(since)}>
              Run now
            </button>
          ) : (
            <button type="button" class="button" onClick={run.stop}>
              Stop
            </button>
          )}
        </div>
      )}
      {run.progress !== null && (
        <div class="card running" role="status">
          <Progress
            label={`Reading ${run.progress.phase}`}
            done={run.progress.done}
            total={run.progress.total || null}
          />
          <p class="hint">It goes on when you leave this page, and its verdict will be here.</p>
        </div>
      )}
      {run.failure && <Failure failure={run.failure} />}
      <Loaded live={run.live} what="the last verdict">
        {({ last }) =>
          last !== null ? (
            <Verdict verdict={last} />
          ) : run.progress === null ? (
            <Empty title="No audit has been run on this console yet.">
              <p>{may('operator') ? 'Run one now.' : 'Somebody with the role operator can run one.'}</p>
            </Empty>
          ) : null
        }
      </Loaded>
    </>
  )
}

function Verdict({ verdict }: { verdict: VerdictAnswer }) {
  const { ok, at, since, until, read, open } = verdict
  return (
    <>
      <section class={`card verdict ${open === null ? 'is-sound' : 'is-broken'}`} aria-label="Last verdict">
        <h2>{verdictText(verdict)}</h2>
        <p>
          Verdict of <At at={at} />, <Ago at={at} />. Audited:{' '}
          {since === null ? (
            'everything that the ledger holds'
          ) : (
            <>
              since <At at={since} />
            </>
          )}
          {until !== null && (
            <>
              {' '}
              until <At at={until} />
            </>
          )}
          .
        </p>
        {ok && open !== null && (
          <p>
            But <At at={open.at} /> an audit found {countOf(open.faultCount, 'fault')}, and none that looked
            there has passed since: audit everything.
          </p>
        )}
        <p class="faint numbers">
          Read:{' '}
          {[
            countOf(read.calls, 'call'),
            countOf(read.retries, 'record of tiers', 'records of tiers'),
            countOf(read.deadLetters, 'dead letter'),
            countOf(read.tallies, 'tally', 'tallies'),
          ].join(', ')}
        </p>
      </section>
      <Faults faults={verdict.faults} count={verdict.faultCount} />
      <Equation verdict={verdict} />
      <Copies copies={verdict.copies} count={verdict.copyCount} />
      <Partitions partitions={verdict.partitions} />
    </>
  )
}

type Line = VerdictAnswer['destinations'][number]
/** Of one destination, or of all of them. */
type Row = VerdictAnswer['sum'] & { of: Line | 'all' }

/** Planned and what came in again, on one side; what became of it, on the other. */
export function Equation({ verdict }: { verdict: VerdictAnswer }) {
  const { destinations: lines, destinationCount, sum } = verdict
  const rows = [
    ...(lines.length > 1 ? [{ ...sum, of: 'all' as const }] : []),
    ...lines.map((line) => ({ ...line, of: line })),
  ]
  const never = ends
    .filter(([, field]) => sum[field] === 0)
    .map(([head, field]) => (field === 'dead' ? 'a dead letter' : head.toLowerCase()))
  return (
    <section class="section">
      <div class="section-head">
        <h2>The equation per destination</h2>
        <p>planned + again = delivered + waiting + dead letters + skipped + erased + held + missing</p>
      </div>
      {lines.length > 0 ? (
        <>
          <Table
            label="The equation per destination"
            columns={columnsFor(sum)}
            rows={rows}
            keyOf={({ of }) => (of === 'all' ? '' : (of.destinationId ?? ' '))}
          />
          {never.length > 0 && <p class="hint">{`None is ${listed(never)}.`}</p>}
          {lines.length < destinationCount && (
            <p class="hint">
              {`${countText(lines.length)} of ${countText(destinationCount)} destinations: those out of balance, and those of which most was planned.`}
            </p>
          )}
        </>
      ) : (
        <Empty title="There was nothing to audit in this time." />
      )}
    </section>
  )
}

const listed = (words: readonly string[]): string =>
  [words.slice(0, -1).join(', '), words.at(-1)].filter(Boolean).join(' or ')

const again = ({ carried, replayed, copies, ahead }: Row): number => carried + replayed + copies + ahead

/** What `again` consists of. */
const againText = ({ carried, replayed, copies, ahead }: Row): string =>
  `${countText(carried)} waited before, ${countText(replayed)} replayed, ${countText(copies)} made twice, ` +
  `${countText(ahead)} resolved just before their commit`

const ends = [
  ['Delivered', 'delivered'],
  ['Waiting', 'waiting'],
  ['Dead letters', 'dead'],
  ['Skipped', 'skipped'],
  ['Erased', 'erased'],
  ['Held', 'held'],
] as const

/** Without those that nothing came to. */
const columnsFor = (sum: VerdictAnswer['sum']): Column<Row>[] => [
  {
    head: 'Destination',
    isName: true,
    cell: ({ of }) =>
      of === 'all' ? (
        <strong>All destinations</strong>
      ) : of.destinationId === null ? (
        <span title="Records that were for no destination, or were not calls">none</span>
      ) : (
        <a class="id" href={pathTo('destination', { id: of.destinationId })}>
          {of.destinationId}
        </a>
      ),
  },
  { head: 'Planned', isNumber: true, moves: 'narrow', cell: ({ planned }) => countText(planned) },
  {
    head: '+ Again',
    isNumber: true,
    moves: 'narrow',
    cell: (row) => <span title={againText(row)}>{countText(again(row))}</span>,
  },
  ...ends
    .filter(([, field]) => sum[field] !== 0)
    .map(([head, field], at): Column<Row> => ({
      head: `${at === 0 ? '=' : '+'} ${head}`,
      isNumber: true,
      moves: 'narrow',
      cell: (row) => <span class={row[field] === 0 ? 'faint' : ''}>{countText(row[field])}</span>,
    })),
  {
    head: '+ Missing',
    isNumber: true,
    cell: ({ balance }) => <span class={balance === 0 ? 'faint' : 'is-bad'}>{countText(balance)}</span>,
  },
]

type Fault = VerdictAnswer['faults'][number]
type Copy = VerdictAnswer['copies'][number]
type Partition = VerdictAnswer['partitions'][number]

const maxRows = 200
const place = ({ topic, partition }: { topic: string; partition: number }) => `${topic}/${partition}`

/** What is wrong, named by partition and offsets. */
export function Faults({ faults, count }: { faults: readonly Fault[]; count: number }) {
  if (count === 0) return null
  return (
    <section class="section">
      <div class="section-head">
        <h2>What is not accounted for</h2>
        {count > maxRows && <p>{`The first ${maxRows} of ${countText(count)}`}</p>}
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
    moves: 'narrow',
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
    moves: 'narrow',
    cell: ({ destinationId }) =>
      destinationId === null ? <NoValue why="Of all" /> : <span class="id">{destinationId}</span>,
  },
  { head: 'Why', moves: 'narrow', cell: ({ why }) => <span class="foreign">{why}</span> },
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
    moves: 'narrow',
    cell: ({ deliveryId }) =>
      deliveryId === null ? <NoValue why="No delivery" /> : <span class="id">{deliveryId}</span>,
  },
  {
    head: 'Made from',
    moves: 'narrow',
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
  { head: 'From', isNumber: true, moves: 'narrow', cell: ({ from }) => countText(from) },
  { head: 'To', isNumber: true, moves: 'narrow', cell: ({ to }) => countText(to) },
  { head: 'Records', isNumber: true, cell: ({ records }) => countText(records) },
  {
    head: 'Lost',
    isNumber: true,
    cell: ({ lost }) => <span class={lost === 0 ? 'faint' : 'is-bad'}>{countText(lost)}</span>,
  },
  { head: 'Tallies', isNumber: true, moves: 'narrow', cell: ({ tallies }) => countText(tallies) },
]
