// The overview and the processes, for people.
import type { Overview } from './overview.ts'
import type { ProcessView } from './processes.ts'
import { table } from '../../cli/terminal.ts'
import { millis, percent } from './command.ts'

const stateOrder = ['down', 'gone', 'troubled', 'paused', 'active', 'disabled']
const breakerOrder = ['open', 'half_open', 'paused', 'ramp', 'closed']

const number = (value: number | null): string => (value === null ? '-' : String(value))

/** Destinations that are in trouble come first, then those with the most attempts. */
export function overviewPage(overview: Overview): string {
  const { totals, lag, waitingInTiers, asOf } = overview
  const destinations = overview.destinations.toSorted(
    (a, b) =>
      stateOrder.indexOf(a.state) - stateOrder.indexOf(b.state) ||
      b.attempts - a.attempts ||
      (a.id < b.id ? -1 : 1),
  )
  const late = asOf === null ? 'the ledger is being read' : `as of ${asOf}`
  const head = [
    `since ${overview.from}, ${late}`,
    `accepted ${totals.acceptedPerSecond}/s  planned ${totals.plannedPerSecond}/s  ` +
      `delivered ${totals.deliveredPerSecond}/s  attempts ${totals.attemptsPerSecond}/s  ` +
      `success ${percent(totals.successRate)}  lag ${number(lag)}  waiting in tiers ${number(waitingInTiers)}`,
  ].join('\n')
  return [
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
  ].join('\n\n')
}

function worstOf(breakers: readonly (string | null)[]): string {
  return breakerOrder.find((breaker) => breakers.includes(breaker)) ?? '-'
}

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
