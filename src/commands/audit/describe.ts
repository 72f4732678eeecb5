// The report of an audit, for people and for machines.
import type { AuditFault, AuditReport, Copy } from '../../core/ledger/audit-report.ts'
import type { DestinationLine } from '../../core/ledger/audit-equation.ts'
import { count, printable, table } from '../output.ts'

const maxShown = 20
/** What can become of a delivery. */
const ends = ['delivered', 'waiting', 'dead', 'skipped', 'erased', 'held'] as const

export function pageOf(report: AuditReport): string {
  const { destinations, faults, copies, copyCount, partitions, read } = report
  const audited = partitions.filter(({ tallies }) => tallies > 0)
  const parts = [
    audited.length === 0
      ? 'the ledger holds nothing of this time'
      : table(
          ['partition', 'since', 'from', 'to', 'records', 'lost', 'tallies'],
          audited.map(({ topic, partition, since, from, to, records, lost, tallies }) => [
            `${topic}/${partition}`,
            new Date(since!).toISOString(),
            from,
            to,
            records,
            lost,
            tallies,
          ]),
        ),
  ]
  if (destinations.length > 0)
    parts.push(
      table(
        ['destination', 'planned', 'again', '=', ...ends, 'missing'],
        destinations.map((line) => [
          line.destinationId === null ? '(none)' : line.destinationId,
          line.planned,
          again(line),
          '',
          ...ends.map((end) => line[end]),
          line.balance,
        ]),
      ),
    )
  if (copyCount > 0)
    parts.push(
      [`${copyCount} made twice, by a crash or a rebalance:`, ...some(copies.map(copyLine), copyCount)].join(
        '\n',
      ),
    )
  if (faults.length > 0) parts.push([...some(faults.map(faultLine), faults.length)].join('\n'))
  const looked = `${read.calls} calls, ${read.retries} records of tiers, ${read.deadLetters} dead letters, ${read.tallies} tallies`
  parts.push(`${verdictOf(report)} (read: ${looked})`)
  return parts.join('\n\n')
}

/** One line for `--follow`. */
export function lineOf(report: AuditReport, now: number): string {
  const sum = (field: 'planned' | 'delivered' | 'waiting' | 'dead') =>
    report.destinations.reduce((total, line) => total + line[field], 0)
  return (
    `${new Date(now).toISOString()}  ${sum('planned')} planned, ${sum('delivered')} delivered, ` +
    `${sum('waiting')} waiting, ${sum('dead')} dead: ${verdictOf(report)}`
  )
}

function verdictOf({ ok, faults, destinations }: AuditReport): string {
  if (ok) return 'everything is accounted for'
  const unbalanced = destinations.filter(({ balance }) => balance !== 0).length
  const named = [
    faults.length > 0 && count(faults.length, 'fault'),
    unbalanced > 0 && `${count(unbalanced, 'destination')} out of balance`,
  ]
  return `NOT everything is accounted for: ${named.filter(Boolean).join(', ')}`
}

/** What came into the tiers beside what was planned. */
const again = ({ carried, replayed, copies, ahead }: DestinationLine): number =>
  carried + replayed + copies + ahead

function faultLine({ kind, topic, partition, destinationId, first, last, why }: AuditFault): string {
  const offsets = first === null ? '' : last === null ? ` from ${first} on` : ` offsets ${first}..${last}`
  const destination = destinationId === null ? '' : `, destination ${printable(destinationId)}`
  return `${kind.toUpperCase().replace('_', ' ')} ${topic}/${partition}${offsets}${destination}: ${printable(why)}`
}

function copyLine({ topic, partition, offset, deliveryId, from, owner }: Copy): string {
  const origin = from ? `${from.topic}/${from.partition} at ${from.offset}` : 'unknown'
  return `  ${topic}/${partition} at ${offset}: ${printable(deliveryId ?? '-')} of ${origin}, by ${printable(owner)}`
}

function some(lines: readonly string[], total: number): string[] {
  const shown = lines.slice(0, maxShown)
  return total > shown.length ? [...shown, `… and ${total - shown.length} more; --json names them`] : shown
}
