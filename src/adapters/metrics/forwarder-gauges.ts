import type { EndpointGauges, ForwarderGauges } from '../../forwarder/metrics.ts'
import type { Retention } from '../kafka/admin/retention.ts'
import { escapeValue, heading, inPieces, labels, other } from './exposition.ts'

/** One URL, or all that are shown together: then states are counts. */
type ShownEndpoint = Pick<EndpointGauges, 'destinationId' | 'urlId' | 'inFlight' | 'limit'> &
  Record<'open' | 'down' | 'paused', number>

const expiryName = 'postrider_destination_certificate_expiry_seconds'
const expiryHelp =
  'When a client certificate or an own CA of a destination expires, in seconds since 1970; of several, the first.'

/** How many that need attention are shown by name although they have no series of their own, of each kind. */
const maxNamed = 1_000
/** URLs that are looked at in one piece of the page. */
const endpointsPerPiece = 500

const endpointFamilies: { name: string; help: string; of: (endpoint: ShownEndpoint) => number }[] = [
  {
    name: 'postrider_endpoint_in_flight',
    help: 'Requests in flight to one URL.',
    of: ({ inFlight }) => inFlight,
  },
  {
    name: 'postrider_endpoint_limit',
    help: 'Requests that may be in flight to one URL at once, as found out; below 1: one, in that share of seconds.',
    of: ({ limit }) => limit,
  },
  {
    name: 'postrider_endpoint_breaker_open',
    help: '1 while deliveries to this URL are deferred unsent.',
    of: ({ open }) => open,
  },
  {
    name: 'postrider_endpoint_down',
    help: '1 from the opening of this URL’s breaker, or when nothing could be sent to it, until it answers again.',
    of: ({ down }) => down,
  },
  {
    name: 'postrider_endpoint_paused',
    help: '1 while this URL gets nothing because it asked for a pause (Retry-After).',
    of: ({ paused }) => paused,
  },
]

/**
 * What is read from a forwarder at each scrape.
 * @param isOwn whether a destination has series of its own; of the others, those that need attention are shown
 */
export function* exposeGauges(
  gauges: ForwarderGauges,
  { callsMs, heldMs }: Retention,
  isOwn: (destinationId: string) => boolean,
): Generator<string> {
  yield (
    heading('postrider_in_flight', 'gauge', 'Requests in flight.') +
    `postrider_in_flight ${gauges.inFlight()}\n`
  )
  // Taken before any is written, for a piece of the page may be written a while after the one before.
  const endpoints = yield* takeEndpoints(gauges, isOwn)
  const labelsOf = (endpoint: { destinationId: string; urlId: string }) =>
    `{destination="${escapeValue(endpoint.destinationId)}",url_id="${escapeValue(endpoint.urlId)}"}`
  for (const { name, help, of } of endpointFamilies) {
    yield* inPieces(
      heading(name, 'gauge', help),
      endpoints,
      (endpoint) => `${name}${labelsOf(endpoint)} ${of(endpoint)}\n`,
    )
  }
  yield* inPieces(
    heading('postrider_destination_not_set_up', 'gauge', '1 for a destination that cannot be set up.'),
    named([...gauges.notSetUp()], (id) => id, isOwn),
    ({ id, count }) => `postrider_destination_not_set_up{destination="${escapeValue(id)}"} ${count}\n`,
  )
  yield* inPieces(
    heading(
      'postrider_destination_without_token',
      'gauge',
      '1 for a destination for whose OAuth2 login no token is to be had.',
    ),
    named([...gauges.withoutToken()], (id) => id, isOwn),
    ({ id, count }) => `postrider_destination_without_token{destination="${escapeValue(id)}"} ${count}\n`,
  )
  const certificates = [...gauges.certificates()]
  for (const kind of ['client', 'ca'] as const)
    yield* inPieces(
      kind === 'client' ? heading(expiryName, 'gauge', expiryHelp) : '',
      named(
        certificates.filter(({ of }) => of === kind),
        ({ destinationId }) => destinationId,
        isOwn,
      ),
      ({ id, one, rest }) => {
        const at =
          one?.expiresAt ?? rest.reduce((first, { expiresAt }) => Math.min(first, expiresAt), Infinity)
        return `${expiryName}{destination="${escapeValue(id)}",certificate="${kind}"} ${at / 1_000}\n`
      },
    )
  yield* inPieces(
    heading('postrider_endpoint_gone', 'gauge', '1 for a URL that answered 410 and gets nothing any more.'),
    named([...gauges.gone()], ({ destinationId }) => destinationId, isOwn),
    ({ id, one, count }) =>
      `postrider_endpoint_gone${labelsOf({ destinationId: id, urlId: one?.urlId ?? other })} ${count}\n`,
  )
  const pauses = named([...gauges.pauses()], ({ destinationId }) => destinationId, isOwn)
  yield* inPieces(
    heading('postrider_destination_paused', 'gauge', '1 for a destination whose calls are held.'),
    pauses,
    ({ id, count }) => `postrider_destination_paused{destination="${escapeValue(id)}"} ${count}\n`,
  )
  yield* inPieces(
    heading(
      'postrider_destination_held_until_seconds',
      'gauge',
      'When Kafka begins to delete what is held for a paused destination, in seconds since 1970.',
    ),
    heldMs === null ? [] : pauses,
    ({ id, one, rest }) => {
      const since = one?.since ?? rest.reduce((earliest, each) => Math.min(earliest, each.since), Infinity)
      return `postrider_destination_held_until_seconds{destination="${escapeValue(id)}"} ${(since + heldMs!) / 1_000}\n`
    },
  )
  yield* exposeWaiting(gauges, callsMs)
  yield* inPieces(
    heading('postrider_consumer_lag', 'gauge', 'Records behind the end, in partitions of this process.'),
    gauges.lag(),
    ({ topic, partition, lag }) =>
      `postrider_consumer_lag${labels({ topic, partition: String(partition) })} ${lag}\n`,
  )
}

/** Those with series of their own, those that need attention, and one for all others, so that sums hold. */
function* takeEndpoints(
  gauges: ForwarderGauges,
  isOwn: (destinationId: string) => boolean,
): Generator<string, ShownEndpoint[]> {
  const shown: ShownEndpoint[] = []
  const rest = { destinationId: other, urlId: other, inFlight: 0, limit: 0, open: 0, down: 0, paused: 0 }
  let left = maxNamed
  let unnamed = 0
  let taken = 0
  for (const {
    destinationId,
    urlId,
    inFlight,
    limit: atOnce,
    turns,
    breakerOpen,
    down,
    paused,
  } of gauges.endpoints()) {
    if (++taken % endpointsPerPiece === 0) yield ''
    const limit = atOnce * turns
    const needsAttention = breakerOpen || down || paused
    const states = { open: Number(breakerOpen), down: Number(down), paused: Number(paused) }
    if (isOwn(destinationId) || (needsAttention && left-- > 0)) {
      shown.push({ destinationId, urlId, inFlight, limit, ...states })
      continue
    }
    unnamed++
    rest.inFlight += inFlight
    rest.limit += limit
    rest.open += states.open
    rest.down += states.down
    rest.paused += states.paused
  }
  return unnamed > 0 ? [...shown, rest] : shown
}

/** One line of a gauge: a destination by its name, or `other` for all of `rest`. */
interface Named<T> {
  id: string
  one: T | null
  rest: readonly T[]
  count: number
}

function named<T>(
  all: readonly T[],
  idOf: (one: T) => string,
  isOwn: (destinationId: string) => boolean,
): Named<T>[] {
  const shown: Named<T>[] = []
  const rest: T[] = []
  let left = maxNamed
  for (const one of all) {
    const id = idOf(one)
    if (isOwn(id) || left-- > 0) shown.push({ id, one, rest: [], count: 1 })
    else rest.push(one)
  }
  return rest.length > 0 ? [...shown, { id: other, one: null, rest, count: rest.length }] : shown
}

/** How long records have waited in Kafka: calls each by their partition, of the tiers what is most overdue. */
function* exposeWaiting(gauges: ForwarderGauges, keptMs: number | null): Generator<string> {
  let ages = heading(
    'postrider_oldest_waiting_call_age_seconds',
    'gauge',
    'For how long Kafka has had the oldest call that waits to be taken; 0 where none waits.',
  )
  const overdue = new Map<string, number>()
  for (const { topic, partition, ageMs, overdueMs, isRetry } of gauges.waiting()) {
    if (isRetry) overdue.set(topic, Math.max(overdueMs, overdue.get(topic) ?? 0))
    else
      ages += `postrider_oldest_waiting_call_age_seconds${labels({ topic, partition: String(partition) })} ${ageMs / 1_000}\n`
  }
  yield ages
  if (keptMs !== null)
    yield (
      heading('postrider_calls_kept_seconds', 'gauge', 'For how long Kafka keeps calls.') +
      `postrider_calls_kept_seconds ${keptMs / 1_000}\n`
    )
  yield* inPieces(
    heading(
      'postrider_retry_overdue_seconds',
      'gauge',
      'How long ago the oldest retry that waits to be taken was due; 0 where none is due.',
    ),
    overdue,
    ([topic, ms]) => `postrider_retry_overdue_seconds${labels({ topic })} ${ms / 1_000}\n`,
  )
}
