// How replays are printed.
import { kindKey } from '../../core/delivery/dead-letter-filter.ts'
import { isoOf, isoOrNull } from '../../core/iso-time.ts'
import {
  isUnfinished,
  replayKinds,
  sentOf,
  type CallReplay,
  type DeadLetterChoice,
  type ReplayJob,
  type ReplayRange,
  type SentKind,
} from '../../core/replay/replay-job.ts'
import type { DryRunReport } from '../../console/replays/dry-run.ts'
import type { ReplayStatus } from '../../console/replays/replays.ts'
import { count, print, printable, printTable } from '../output.ts'

/** What retention has taken; null for nothing. */
export function missing({ deadLetters }: ReplayRange, keptSince: number | null): string | null {
  if (keptSince === null) return null
  const what = deadLetters === null ? 'calls' : 'dead letters'
  return `${what} from before ${isoOf(keptSince)} are missing: Kafka does not keep all of them any more`
}

export const waiting: Record<NonNullable<ReplayStatus['waitsFor']>, string> = {
  disabled: 'it waits: the destination is disabled',
  paused: 'it waits: the destination is paused',
}

export function printStatus({ job, totals, toLook, waitsFor, overlapping }: ReplayStatus): void {
  const { id, state, rate, createdAt } = job
  line('replay', id)
  line('destination', job.deadLetters === null ? job.destinationId : null)
  line('state', waitsFor === null ? state : `${state}; ${waiting[waitsFor]}`)
  line('started', isoOf(createdAt))
  if (job.deadLetters === null) printCalls(job)
  else printChoice(job.deadLetters, periodOf(job))
  line('rate', rate === null ? null : `${rate} a second`)
  line('missing', missing(job, job.keptSince))
  line('looked at', toLook === null ? String(totals.looked) : `${totals.looked} of about ${toLook}`)
  const kinds = job.deadLetters === null ? replayKinds : kindsOf(job)
  line('sent', `${sentOf(totals)} (${kinds.map((kind) => `${kind} ${totals[kind]}`).join(', ')})`)
  if (totals.erased > 0) line('erased', `${totals.erased} not sent: their users were erased`)
  if (totals.refused > 0) line('refused', `${totals.refused} not sent: ${refusedText(job)}`)
  if (totals.repeated > 0)
    line('repeated', `${totals.repeated} not sent: more failures of the same deliveries`)
  if (totals.lost > 0) line('lost', `${totals.lost}: retention was faster`)
  if (overlapping.length > 0) line('note', overlapNote(overlapping))
  if (isUnfinished(job) && state === 'paused') line('next', `\`postrider replays resume ${id}\``)
}

function line(name: string, text: string | null): void {
  if (text !== null) print(`${name.padEnd(12)} ${printable(text)}`)
}

function printCalls({ pauseId, since, until, only, types, events, user, messageId }: CallReplay): void {
  line('calls', pauseId === null ? `from ${isoOf(since)} to ${isoOf(until)}` : `that pause ${pauseId} held`)
  line('only', only.join(', '))
  line('types', types && types.join(', '))
  line('events', events && events.join(', '))
  line('user', user)
  line('call', messageId)
}

function printChoice({ ids, reason, destination, status, kinds }: DeadLetterChoice, period: string): void {
  line('dead letters', ids ? ids.join(', ') : period === '' ? 'of any time' : `that failed${period}`)
  line('reasons', reason && reason.join(', '))
  line('to', destination && destination.join(', '))
  line('last status', status && status.join(', '))
  line('kinds', kinds && kinds.map(kindKey).join(', '))
}

function periodOf({ since, until }: Pick<ReplayJob, 'since' | 'until'>): string {
  const from = since === null ? '' : ` from ${isoOf(since)}`
  return from + (until === null ? '' : ` to ${isoOf(until)}`)
}

/** What it may send. */
const kindsOf = (range: ReplayRange): readonly SentKind[] =>
  range.deadLetters === null ? replayKinds.filter((kind) => range.only.includes(kind)) : ['failed', 'raw']

const refusedText = ({ deadLetters }: ReplayJob): string =>
  deadLetters === null
    ? 'too large for a retry topic'
    : '`postrider dead-letters replay --dry-run` says why they cannot be replayed'

export const overlapNote = (ids: readonly string[]): string =>
  `${ids.join(', ')} began before and may send the same; receivers know them by their Idempotency-Key`

export function printList(jobs: readonly ReplayJob[]): void {
  if (jobs.length === 0) return print('no replays; `postrider replay --help` shows how to make one')
  printTable(
    ['ID', 'DESTINATION', 'STATE', 'ONLY', 'SINCE', 'UNTIL', 'SENT'],
    jobs.map((job) => [
      job.id,
      job.deadLetters === null ? job.destinationId : '-',
      job.state,
      job.deadLetters === null ? job.only.join(',') : 'dead letters',
      isoOrNull(job.since) ?? '-',
      isoOrNull(job.until) ?? '-',
      job.totals ? sentOf(job.totals) : '',
    ]),
  )
}

export function printDryRun(report: DryRunReport): void {
  const { range, counts, erased, refused, repeated, unfinished } = report
  const kinds = kindsOf(range)
  const total = kinds.reduce((sum, kind) => sum + counts[kind], 0)
  print(`${count(total, 'delivery').replace('deliverys', 'deliveries')} would be sent, and nothing was`)
  const gone = missing(range, report.keptSince)
  if (gone !== null) print(gone)
  if (erased > 0) print(`${erased} would not: their users were erased`)
  if (refused > 0) print(`${refused} cannot be replayed`)
  if (repeated > 0) print(`${repeated} more are further failures of the same deliveries`)
  if (unfinished > 0) print(`${unfinished} calls are not through the forwarders yet: a replay waits for them`)
  if (total > 0) printCounts(report, kinds)
  if (report.results.length > 0) printResults(report)
}

function printCounts({ days, partitions }: DryRunReport, kinds: readonly SentKind[]): void {
  const sum = (each: Record<SentKind, number>) => kinds.map((kind) => each[kind])
  const headings = kinds.map((kind) => kind.toUpperCase())
  print('')
  printTable(
    ['DAY', ...headings],
    days.map((day) => [day.day, ...sum(day)]),
  )
  print('')
  printTable(
    ['PARTITION', ...headings],
    partitions
      .filter((each) => kinds.some((kind) => each[kind] > 0))
      .map((each) => [String(each.partition), ...sum(each)]),
  )
}

function printResults({ results }: DryRunReport): void {
  print('')
  printTable(
    ['ID', 'DELIVERY', 'GOES TO'],
    results.map(({ id, deliveryId, to, why }) => [id, deliveryId ?? '-', to ?? `- (${why})`]),
  )
}
