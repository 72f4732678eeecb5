// What `top` shows: the overview and the processes, as text that fits a screen.
import type { Overview } from '../../console/statistics/overview.ts'
import type { ProcessView } from '../../console/statistics/processes.ts'
import { table } from '../output.ts'
import { millis, percent } from './describe.ts'

const stateOrder = ['down', 'gone', 'troubled', 'paused', 'active', 'disabled']
const breakerOrder = ['open', 'half_open', 'paused', 'ramp', 'closed']

const number = (value: number | null): string => (value === null ? '-' : String(value))

/** Destinations that are in trouble come first, then those with the most attempts. */
export function frameOf(overview: Overview, processes: readonly ProcessView[], now: number): string {
  const { totals, lag, waitingInTiers, asOf } = overview
  const destinations = overview.destinations.toSorted(
    (a, b) =>
      stateOrder.indexOf(a.state) - stateOrder.indexOf(b.state) ||
      b.attempts - a.attempts ||
      (a.id < b.id ? -1 : 1),
  )
  const late = asOf === null ? 'the ledger is being read' : `as of ${asOf}`
  const head = [
    `${new Date(now).toISOString()}  since ${overview.from}, ${late}`,
    `accepted ${totals.acceptedPerSecond}/s  planned ${totals.plannedPerSecond}/s  ` +
      `delivered ${totals.deliveredPerSecond}/s  attempts ${totals.attemptsPerSecond}/s  ` +
      `success ${percent(totals.successRate)}  lag ${number(lag)}  waiting in tiers ${number(waitingInTiers)}`,
  ].join('\n')
  const parts = [
    head,
    table(
      [
        ...[
          'destination',
          'state',
          'delivered/s',
          'attempts/s',
          'success',
          'p50',
          'p99',
          'in flight',
          'queued',
        ],
        ...['retried', 'dead', 'breaker'],
      ],
      destinations.map((each) => [
        each.id,
        each.state,
        each.deliveredPerSecond,
        each.attemptsPerSecond,
        percent(each.successRate),
        millis(each.p50Ms),
        millis(each.p99Ms),
        each.inFlight,
        each.queued,
        each.retried + each.deferred,
        each.deadLettered,
        worstOf(each.urls.map(({ breaker }) => breaker)),
      ]),
    ),
  ]
  if (processes.length > 0)
    parts.push(
      table(
        ['process', 'state', 'version', 'host', 'partitions', 'lag', 'in flight', 'seen'],
        processes.map(processRow(now)),
      ),
    )
  return parts.join('\n\n')
}

function worstOf(breakers: readonly (string | null)[]): string {
  return breakerOrder.find((breaker) => breakers.includes(breaker)) ?? '-'
}

const processRow =
  (now: number) =>
  ({ roles, state, version, host, pid, partitions, endpoints, requestsInFlight, seenAt }: ProcessView) => {
    const lags = partitions.flatMap(({ lag }) => lag ?? [])
    const inFlight = endpoints.reduce((sum, endpoint) => sum + endpoint.inFlight, requestsInFlight ?? 0)
    return [
      roles.join('+'),
      state,
      version,
      `${host}/${pid}`,
      partitions.length,
      number(lags.length === 0 ? null : lags.reduce((sum, lag) => sum + lag, 0)),
      inFlight,
      `${Math.max(0, Math.round((now - Date.parse(seenAt)) / 1_000))} s ago`,
    ]
  }

/** As much of it as a screen has room for. */
export function fitted(frame: string, columns: number, rows: number): string {
  const lines = frame.split('\n').map((line) => [...line].slice(0, columns).join(''))
  if (lines.length < rows) return lines.join('\n')
  return [...lines.slice(0, rows - 2), `… and ${lines.length - rows + 2} more lines`].join('\n')
}
