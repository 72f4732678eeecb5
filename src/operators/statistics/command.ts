// What the commands of statistics have beside their operations, and how they show it to people.
// The overview and the processes, for people.
import type { CommandShape } from '../../cli/operations/operation-command.ts'
import { count, printable, table } from '../../cli/terminal.ts'
import { formatDuration } from '../../core/duration.ts'
import { healthText } from '../../core/statistics/health.ts'
import type { Pipeline } from '../../core/statistics/pipeline.ts'
import { deliveryFields, type AttemptFigures, type DeliveryCounts } from '../../core/statistics/views.ts'
import type { DestinationOverview, Overview } from './overview.ts'
import type { ProcessView } from './processes.ts'
import type { attemptView, DestinationStats, SourceStats, TotalStats } from './series.ts'

const bars = [...'▁▂▃▄▅▆▇█']

/** One character a value, as high as its share of the greatest; a space for nothing. */
export function sparkline(values: readonly number[]): string {
  const max = Math.max(...values, 0)
  return values
    .map((value) => (value === 0 ? ' ' : bars[Math.ceil((value / max) * bars.length) - 1]!))
    .join('')
}

export const percent = (share: number | null): string =>
  share === null ? '-' : `${(Math.floor(share * 10_000) / 100).toFixed(2)}%`

export const millis = (ms: number | null): string => (ms === null ? '-' : `${Math.round(ms)} ms`)

/** The fields that are always shown, and the others where there are any. */
function shownFields(rows: readonly DeliveryCounts[]): (typeof deliveryFields)[number][] {
  const always = ['planned', 'delivered', 'deadLettered']
  return deliveryFields.filter((field) => always.includes(field) || rows.some((row) => row[field] > 0))
}

const headingOf: Partial<Record<(typeof deliveryFields)[number], string>> = {
  cameDue: 'came due',
  deadLettered: 'dead',
}

const attemptHeadings = ['attempts', 'success', 'p50', 'p99']
const attemptCells = ({ attempts, successRate, p50Ms, p99Ms }: AttemptFigures) => [
  attempts,
  percent(successRate),
  millis(p50Ms),
  millis(p99Ms),
]

/** A row for each; the first cell names it. */
export function deliveriesTable(
  heading: string,
  rows: readonly [string, DeliveryCounts & AttemptFigures][],
): string {
  const fields = shownFields(rows.map(([, row]) => row))
  return table(
    [heading, ...fields.map((field) => headingOf[field] ?? field), ...attemptHeadings],
    rows.map(([name, row]) => [name, ...fields.map((field) => row[field]), ...attemptCells(row)]),
  )
}

const incoming = ['planned', 'sentAgain', 'waitedBefore'] as const
const outgoing = [
  ...(['delivered', 'waiting', 'deadLettered', 'held', 'skipped', 'erased', 'unaccounted'] as const),
]
const stepNames: Partial<Record<keyof Pipeline, string>> = {
  sentAgain: 'sent again',
  waitedBefore: 'waited before',
  deadLettered: 'dead',
}

const pipelineTable = (pipeline: Pipeline): string =>
  table(
    [...incoming, ...outgoing].map((step) => stepNames[step] ?? step),
    [[...incoming, ...outgoing].map((step) => pipeline[step] ?? 'not known')],
  )

export function destinationPage(stats: DestinationStats & { pipeline: Pipeline }): string {
  const { destinationId, totals, points, pipeline } = stats
  const line = (name: string, values: number[]) =>
    `${name.padEnd(9)} |${sparkline(values)}| at most ${Math.max(...values, 0)} per point`
  const parts = [
    `${printable(destinationId || '(none)')}: ${spanText(stats)}`,
    [
      line(
        'delivered',
        points.map(({ delivered }) => delivered),
      ),
      line(
        'failed',
        points.map(({ failed }) => failed),
      ),
    ].join('\n'),
    deliveriesTable('', [['in all', totals]]),
    pipelineTable(pipeline),
  ]
  const reasons = [
    ...reasonsOf('skipped', totals.skipReasons),
    ...reasonsOf('dead letter', totals.deadLetterReasons),
    ...reasonsOf('released', totals.releaseReasons),
  ]
  if (reasons.length > 0) parts.push(table(['what', 'reason', 'count'], reasons))
  if (totals.urls.length > 0)
    parts.push(
      table(
        ['URL', ...attemptHeadings, 'outcomes'],
        totals.urls.map((url) => [url.urlId, ...attemptCells(url), listOf(url.outcomes)]),
      ),
    )
  const filled = points.filter(
    (point) => point.attempts > 0 || deliveryFields.some((field) => point[field] > 0),
  )
  if (filled.length > 0)
    parts.push(
      deliveriesTable(
        'from',
        filled.map((point) => [point.at, point]),
      ),
    )
  return parts.join('\n\n')
}

/** What is always shown of what came in. */
const collectedFields = ['accepted', 'duplicate', 'refused'] as const

export function sourcePage(stats: SourceStats): string {
  const { sourceId, totals, points } = stats
  const accepted = points.map((point) => point.accepted)
  const filled = points.filter((point) => point.accepted + point.duplicate + point.refused > 0)
  const fields = [...collectedFields, ...(totals.flagged > 0 ? (['flagged'] as const) : [])]
  const parts = [
    `${printable(sourceId)}: ${spanText(stats)}`,
    `accepted  |${sparkline(accepted)}| at most ${Math.max(...accepted, 0)} per point`,
    table(
      ['type', ...fields],
      [...totals.types, { ...totals, type: 'in all' }].map((each) => [
        each.type,
        ...fields.map((field) => each[field]),
      ]),
    ),
  ]
  const refusals = Object.entries(totals.refusals)
  if (refusals.length > 0) parts.push(table(['refused for', 'count'], refusals))
  if (filled.length > 0)
    parts.push(
      table(
        ['from', ...fields],
        filled.map(({ at, ...point }) => [at, ...fields.map((field) => point[field])]),
      ),
    )
  return parts.join('\n\n')
}

export function totalPage(stats: TotalStats & { pipeline: Pipeline }): string {
  const { totals, points, pipeline } = stats
  const line = (name: string, field: 'accepted' | 'delivered' | 'failed') => {
    const values = points.map((point) => point[field])
    return `${name.padEnd(9)} |${sparkline(values)}| at most ${Math.max(...values, 0)} per point`
  }
  return [
    `all: ${spanText(stats)}`,
    [line('accepted', 'accepted'), line('delivered', 'delivered'), line('failed', 'failed')].join('\n'),
    table(collectedFields, [collectedFields.map((field) => totals[field])]),
    deliveriesTable('', [['in all', totals]]),
    pipelineTable(pipeline),
  ].join('\n\n')
}

interface Span {
  from: string
  to: string
  stepSeconds: number
  points: readonly unknown[]
}

const spanText = ({ from, to, stepSeconds, points }: Span): string =>
  `${from} to ${to}, ${count(points.length, 'point')} of ${formatDuration(stepSeconds * 1_000)}`

const reasonsOf = (what: string, reasons: Record<string, number>): [string, string, number][] =>
  Object.entries(reasons).map(([reason, number]) => [what, reason, number])

const listOf = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .map(([name, number]) => `${name} ${number}`)
    .join(', ')

export const attemptRow = (each: ReturnType<typeof attemptView>): (string | number)[] => [
  each.at,
  each.destinationId,
  each.urlId,
  each.outcome,
  each.status ?? '-',
  millis(each.durationMs),
  each.attempt ?? '-',
  each.messageId,
  each.detail ?? '',
]

const number = (value: number | null): string => (value === null ? '-' : String(value))

/** The worst destinations. */
export function overviewPage(overview: Overview): string {
  const { totals, lag, waitingInTiers, asOf, destinations, destinationsOmitted } = overview
  const late = asOf === null ? 'the ledger is being read' : `as of ${asOf}`
  const head = [
    `since ${overview.from}, ${late}`,
    `accepted ${totals.acceptedPerSecond}/s  planned ${totals.plannedPerSecond}/s  ` +
      `delivered ${totals.deliveredPerSecond}/s  attempts ${totals.attemptsPerSecond}/s  ` +
      `success ${percent(totals.successRate)}  lag ${number(lag)}  waiting in tiers ${number(waitingInTiers)}`,
  ].join('\n')
  return [
    head,
    table([...figureHeadings, 'breaker'], destinations.map(summaryRow)),
    ...(destinationsOmitted > 0
      ? [`${destinationsOmitted} more; \`postrider destinations figures\` lists them`]
      : []),
  ].join('\n\n')
}

const figureHeadings = [
  ...['destination', 'health', 'delivered/s', 'attempts/s', 'success', 'p50', 'p99', 'in flight', 'queued'],
  ...['retried', 'dead'],
]

const figureRow = (each: Omit<Overview['destinations'][number], 'breaker'>): (string | number)[] => [
  each.id,
  healthText(each.health),
  each.deliveredPerSecond,
  each.attemptsPerSecond,
  percent(each.successRate),
  millis(each.p50Ms),
  millis(each.p99Ms),
  each.inFlight,
  each.queued,
  each.retried + each.deferred,
  each.deadLettered,
]

const summaryRow = (each: Overview['destinations'][number]) => [...figureRow(each), each.breaker ?? '-']

export const systemPage = ({ processes }: { processes: readonly ProcessView[] }): string =>
  table(
    ['process', 'state', 'version', 'host', 'partitions', 'lag', 'in flight', 'seen'],
    processes.map(processRow),
  )

function processRow(each: ProcessView): (string | number)[] {
  const { roles, state, version, host, pid, partitions, endpoints, requestsInFlight, seenAt } = each
  const lags = partitions.flatMap(({ lag }) => lag ?? [])
  return [
    roles.join('+'),
    state,
    version,
    `${host}/${pid}`,
    partitions.length,
    number(lags.length === 0 ? null : lags.reduce((sum, lag) => sum + lag, 0)),
    endpoints.reduce((sum, endpoint) => sum + endpoint.inFlight, requestsInFlight ?? 0),
    seenAt,
  ]
}

export const statisticsShapes: Readonly<Record<string, CommandShape>> = {
  overview: { text: overviewPage },
  listDestinationFigures: {
    none: 'there is no such destination',
    row: {
      headings: [...figureHeadings, 'waiting'],
      of: (destination: DestinationOverview) => [...figureRow(destination), number(destination.waiting)],
    },
  },
  showSystem: { text: systemPage },
  totalStats: { text: totalPage },
  destinationStats: { text: destinationPage },
  sourceStats: { text: sourcePage },
  listAttempts: {
    none: 'no attempt is listed that is asked for',
    isNewestFirst: true,
    row: {
      headings: ['at', 'destination', 'URL', 'outcome', 'status', 'took', 'attempt', 'message', 'detail'],
      of: (attempt: ReturnType<typeof attemptView>) => attemptRow(attempt),
    },
  },
}
