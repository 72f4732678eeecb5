// The report of an audit, for people and for machines.
import { setTimeout as delay } from 'node:timers/promises'
import { Command } from 'commander'
import { loadContext, runAction } from '../../cli/context.ts'
import { readPeriod } from '../../cli/flags.ts'
import { io, stopSignal } from '../../cli/io.ts'
import { print, printJson, count, printable, table, withProgress } from '../../cli/terminal.ts'
import type { DestinationLine, AuditReport, AuditFault, Copy } from '../../core/ledger/audit-report.ts'
import { auditFailure, auditPassed } from '../../core/operational/failures.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import { SqliteKeySet } from '../audiences/staged-list.ts'
import { sendFound } from '../operational-events/open.ts'
import { audit } from './audit.ts'
import { openAuditSource } from './kafka.ts'

/** Between two audits of `--follow`. */
const followMs = 5_000
/** At most one operational event in so long: its cause is one. */
const reportMs = 60_000

export function auditCommand(): Command {
  return new Command('audit')
    .description(
      'Proves, or disproves, that every call is accounted for: that each delivery was delivered, waits in a retry ' +
        'tier, is a dead letter, was skipped or was erased, and that no offset was passed over. Reads the ledger, ' +
        'the calls, the retry tiers and the dead letters; forwarders may run meanwhile. Exits with 1 if anything ' +
        'is missing.',
    )
    .option('--since <time>', 'what was committed since then: an ISO time (UTC), or a duration ago (2h)')
    .option('--until <time>', 'what was committed before then: an ISO time (UTC), or a duration ago (30m)')
    .option('--follow', 'again and again, a line each time, until stopped')
    .option('--json', 'the report as one JSON object (with --follow one a line)')
    .action(runAction(run))
}

async function run(
  options: { since?: string; until?: string; follow?: true; json?: true },
  command: Command,
): Promise<void> {
  const period = readPeriod(options, Date.now())
  const deployment = loadContext(command)
  const source = openAuditSource({ ...deployment, groupId: deployment.config.groupId })
  const signal = stopSignal()
  const once = (): Promise<AuditReport> =>
    withProgress((bar) =>
      audit(source, () => new SqliteKeySet(), {
        ...period,
        signal,
        progress: (phase, done, total) =>
          bar.show(`reading ${phase} {bar} {value}/{total}, {eta_formatted} left`, done, total),
      }),
    )
  /** Found again, it is no news. */
  let reported: string | null = null
  let reportedAt = -Infinity
  let hasVerdict = false
  do {
    const report = await once().catch((error: unknown) => {
      if (signal.aborted) return null
      throw error
    })
    if (!report) {
      if (hasVerdict) return
      throw new PostriderError('local', 'the audit was stopped before its verdict: nothing is proved')
    }
    hasVerdict = true
    if (!report.ok) io().exitCode = 1
    if (options.json) printJson(report)
    else print(options.follow && report.ok ? lineOf(report, Date.now()) : pageOf(report))
    const now = Date.now()
    const failure = auditFailure(report, now)
    const found = failure?.identity ?? null
    if (found !== reported && now >= reportedAt + reportMs)
      await sendFound(deployment, failure ?? auditPassed(reported!, now)).then(
        () => ([reported, reportedAt] = [found, now]),
        (error: unknown) => deployment.log.warn(`no operational event was sent: ${messageOf(error)}`),
      )
    if (options.follow) await delay(followMs, undefined, { signal }).catch(() => {})
  } while (options.follow && !signal.aborted)
}

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
