// How replays are shown to people.
import { kindKey } from '../../core/delivery/dead-letter-filter.ts'
import { replayKinds, type SentKind } from '../../core/replay/replay-job.ts'
import { printable, table } from '../output.ts'
import type { DryRun, Status } from './shapes.ts'

/** What retention has taken; null for nothing. */
export function missing({
  deadLetters,
  keptSince,
}: Pick<Status, 'deadLetters' | 'keptSince'>): string | null {
  if (keptSince === null) return null
  const what = deadLetters === null ? 'calls' : 'dead letters'
  return `${what} from before ${keptSince} are missing: Kafka does not keep all of them any more`
}

export const waiting: Record<NonNullable<Status['waitsFor']>, string> = {
  disabled: 'it waits: the destination is disabled',
  paused: 'it waits: the destination is paused',
}

export function statusText(status: Status): string {
  const { id, state, rate, createdAt, destinationId, deadLetters, totals, toLook, waitsFor, overlapping } =
    status
  const kinds = deadLetters === null ? replayKinds : kindsOf(status)
  return lines([
    ['replay', id],
    ['destination', destinationId],
    ['state', waitsFor === null ? state : `${state}; ${waiting[waitsFor]}`],
    ['started', createdAt],
    ...(deadLetters === null ? callLines(status) : choiceLines(deadLetters, status)),
    ['rate', rate === null ? null : `${rate} a second`],
    ['missing', missing(status)],
    ['looked at', toLook === null ? String(totals.looked) : `${totals.looked} of about ${toLook}`],
    ['sent', `${status.sent} (${kinds.map((kind) => `${kind} ${totals[kind]}`).join(', ')})`],
    ['erased', some(totals.erased, 'not sent: their users were erased')],
    ['refused', some(totals.refused, `not sent: ${refusedText(status)}`)],
    ['repeated', some(totals.repeated, 'not sent: more failures of the same deliveries')],
    ['lost', totals.lost === 0 ? null : `${totals.lost}: retention was faster`],
    ['note', overlapping.length === 0 ? null : overlapNote(overlapping)],
    ['next', state === 'paused' ? `\`postrider replays resume ${id}\`` : null],
  ])
}

type Line = [name: string, text: string | null]

const lines = (all: readonly Line[]): string =>
  all
    .filter(([, text]) => text !== null)
    .map(([name, text]) => `${name.padEnd(12)} ${printable(text!)}`)
    .join('\n')

const some = (number: number, what: string): string | null => (number === 0 ? null : `${number} ${what}`)

const listed = (names: readonly string[] | null): string | null => names && names.join(', ')

const callLines = ({ pauseId, since, until, only, types, events, user, messageId }: Status): Line[] => [
  ['calls', pauseId === null ? `from ${since} to ${until}` : `that pause ${pauseId} held`],
  ['only', listed(only)],
  ['types', listed(types)],
  ['events', listed(events)],
  ['user', user],
  ['call', messageId],
]

function choiceLines(
  { ids, reason, destination, status, kinds }: NonNullable<Status['deadLetters']>,
  { since, until }: Pick<Status, 'since' | 'until'>,
): Line[] {
  const period = (since === null ? '' : ` from ${since}`) + (until === null ? '' : ` to ${until}`)
  return [
    ['dead letters', listed(ids) ?? (period === '' ? 'of any time' : `that failed${period}`)],
    ['reasons', listed(reason)],
    ['to', listed(destination)],
    ['last status', listed(status)],
    ['kinds', kinds && kinds.map(kindKey).join(', ')],
  ]
}

/** What it may send. */
const kindsOf = ({ deadLetters, only }: Pick<Status, 'deadLetters' | 'only'>): readonly SentKind[] =>
  deadLetters === null ? replayKinds.filter((kind) => only.includes(kind)) : ['failed', 'raw']

const refusedText = ({ deadLetters }: Status): string =>
  deadLetters === null
    ? 'too large for a retry topic'
    : '`postrider dead-letters replay --dry-run` says why they cannot be replayed'

export const overlapNote = (ids: readonly string[]): string =>
  `${ids.join(', ')} began before and may send the same; receivers know them by their Idempotency-Key`

export function dryRunText(report: DryRun): string {
  const { counts, erased, refused, repeated, unfinished, results } = report
  const kinds = kindsOf(report)
  const total = kinds.reduce((sum, kind) => sum + counts[kind], 0)
  const said = [
    `${total} ${total === 1 ? 'delivery' : 'deliveries'} would be sent, and nothing was`,
    missing(report),
    some(erased, 'would not: their users were erased'),
    some(refused, 'cannot be replayed'),
    some(repeated, 'more are further failures of the same deliveries'),
    some(unfinished, 'calls are not through the forwarders yet: a replay waits for them'),
  ].filter((line) => line !== null)
  const parts = [said.join('\n')]
  if (total > 0) parts.push(...countTables(report, kinds))
  if (results.length > 0)
    parts.push(
      table(
        ['ID', 'DELIVERY', 'GOES TO'],
        results.map(({ id, deliveryId, to, why }) => [id, deliveryId ?? '-', to ?? `- (${why})`]),
      ),
    )
  return parts.join('\n\n')
}

function countTables({ days, partitions }: DryRun, kinds: readonly SentKind[]): string[] {
  const sum = (each: Record<SentKind, number>) => kinds.map((kind) => each[kind])
  const filled = partitions.filter((each) => kinds.some((kind) => each[kind] > 0))
  return [
    table(
      ['DAY', ...kinds],
      days.map((day) => [day.day, ...sum(day)]),
    ),
    table(
      ['PARTITION', ...kinds],
      filled.map((each) => [String(each.partition), ...sum(each)]),
    ),
  ]
}
