import { pathTo } from '../../../console/page-paths.ts'
import type { VerdictAnswer } from '../../api/routes.ts'
import { countText } from '../../components/figures.ts'
import { Empty } from '../../components/notices.tsx'
import { Table, type Column } from '../../components/table.tsx'

type Line = VerdictAnswer['destinations'][number]

/** Planned and what came in again, on one side; what became of it, on the other. */
export function Equation({ lines }: { lines: readonly Line[] }) {
  return (
    <section class="section">
      <div class="section-head">
        <h2>The equation per destination</h2>
        <p>planned + again = delivered + waiting + dead letters + skipped + erased + held + missing</p>
      </div>
      {lines.length > 0 ? (
        <Table
          label="The equation per destination"
          columns={columns}
          rows={lines}
          keyOf={({ destinationId }) => destinationId ?? ''}
        />
      ) : (
        <Empty title="There was nothing to audit in this time." />
      )}
    </section>
  )
}

const again = ({ carried, replayed, copies, ahead }: Line): number => carried + replayed + copies + ahead

/** What `again` consists of. */
const againText = ({ carried, replayed, copies, ahead }: Line): string =>
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

const columns: Column<Line>[] = [
  {
    head: 'Destination',
    isName: true,
    cell: ({ destinationId: id }) =>
      id === null ? (
        <span title="Records that were for no destination, or were not calls">none</span>
      ) : (
        <a class="id" href={pathTo('destination', { id })}>
          {id}
        </a>
      ),
  },
  { head: 'Planned', isNumber: true, cell: ({ planned }) => countText(planned) },
  {
    head: '+ Again',
    isNumber: true,
    cell: (line) => <span title={againText(line)}>{countText(again(line))}</span>,
  },
  ...ends.map(([head, field], at): Column<Line> => ({
    head: `${at === 0 ? '=' : '+'} ${head}`,
    isNumber: true,
    cell: (line) => <span class={line[field] === 0 ? 'faint' : ''}>{countText(line[field])}</span>,
  })),
  {
    head: '+ Missing',
    isNumber: true,
    cell: ({ balance }) => <span class={balance === 0 ? 'faint' : 'is-bad'}>{countText(balance)}</span>,
  },
]
