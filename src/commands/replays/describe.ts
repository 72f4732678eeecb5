import { isoOf } from '../../core/iso-time.ts'
// How replays are printed.
import {
  isUnfinished,
  replayKinds,
  sentOf,
  type ReplayJob,
  type ReplayKind,
} from '../../core/replay/replay-job.ts'
import type { DryRunReport } from '../../console/replays/dry-run.ts'
import type { ReplayStatus } from '../../console/replays/replays.ts'
import { count, print, printable, printTable } from '../output.ts'

/** What retention has taken; null for nothing. */
export function missing({ keptSince }: Pick<ReplayJob, 'keptSince'>): string | null {
  return keptSince === null
    ? null
    : `calls from before ${isoOf(keptSince)} are missing: Kafka does not keep all of them any more`
}

export const waiting: Record<NonNullable<ReplayStatus['waitsFor']>, string> = {
  disabled: 'it waits: the destination is disabled',
  paused: 'it waits: the destination is paused',
}

export function printStatus({ job, totals, toLook, waitsFor, overlapping }: ReplayStatus): void {
  const {
    id,
    destinationId,
    state,
    only,
    since,
    until,
    types,
    events,
    user,
    messageId,
    rate,
    createdAt,
    pauseId,
  } = job
  const line = (name: string, text: string | null) => {
    if (text !== null) print(`${name.padEnd(12)} ${printable(text)}`)
  }
  line('replay', id)
  line('destination', destinationId)
  line('state', waitsFor === null ? state : `${state}; ${waiting[waitsFor]}`)
  line('started', isoOf(createdAt))
  line('calls', pauseId === null ? `from ${isoOf(since)} to ${isoOf(until)}` : `that pause ${pauseId} held`)
  line('only', only.join(', '))
  line('types', types && types.join(', '))
  line('events', events && events.join(', '))
  line('user', user)
  line('call', messageId)
  line('rate', rate === null ? null : `${rate} a second`)
  line('missing', missing(job))
  line('looked at', toLook === null ? String(totals.looked) : `${totals.looked} of about ${toLook}`)
  line('sent', `${sentOf(totals)} (${replayKinds.map((kind) => `${kind} ${totals[kind]}`).join(', ')})`)
  if (totals.erased > 0) line('erased', `${totals.erased} not sent: their users were erased`)
  if (totals.refused > 0) line('refused', `${totals.refused} not sent: too large for a retry topic`)
  if (totals.lost > 0) line('lost', `${totals.lost}: retention was faster`)
  if (overlapping.length > 0) line('note', overlapNote(overlapping))
  if (isUnfinished(job) && state === 'paused') line('next', `\`postrider replays resume ${id}\``)
}

export const overlapNote = (ids: readonly string[]): string =>
  `${ids.join(', ')} began before and may send the same calls; receivers know them by their Idempotency-Key`

export function printList(jobs: readonly ReplayJob[]): void {
  if (jobs.length === 0) return print('no replays; `postrider replay --help` shows how to make one')
  printTable(
    ['ID', 'DESTINATION', 'STATE', 'ONLY', 'SINCE', 'UNTIL', 'SENT'],
    jobs.map(({ id, destinationId, state, only, since, until, totals }) => [
      id,
      destinationId,
      state,
      only.join(','),
      isoOf(since),
      isoOf(until),
      totals ? sentOf(totals) : '',
    ]),
  )
}

export function printDryRun(report: DryRunReport): void {
  const { only, counts, erased, unfinished, days, partitions } = report
  const sum = (each: Record<ReplayKind, number>) => only.map((kind) => each[kind])
  const total = only.reduce((all, kind) => all + counts[kind], 0)
  print(`${count(total, 'delivery').replace('deliverys', 'deliveries')} would be sent, and nothing was`)
  const gone = missing(report)
  if (gone !== null) print(gone)
  if (erased > 0) print(`${erased} would not: their users were erased`)
  if (unfinished > 0) print(`${unfinished} calls are not through the forwarders yet: a replay waits for them`)
  if (total === 0) return
  const headings = only.map((kind) => kind.toUpperCase())
  print('')
  printTable(
    ['DAY', ...headings],
    days.map((day) => [day.day, ...sum(day)]),
  )
  print('')
  printTable(
    ['PARTITION', ...headings],
    partitions
      .filter((each) => only.some((kind) => each[kind] > 0))
      .map((each) => [String(each.partition), ...sum(each)]),
  )
}
