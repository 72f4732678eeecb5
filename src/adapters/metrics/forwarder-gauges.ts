import type { EndpointGauges, ForwarderGauges } from '../../forwarder/metrics.ts'
import { escapeValue, heading, inPieces, labels } from './exposition.ts'

const endpointFamilies: { name: string; help: string; of: (endpoint: EndpointGauges) => number }[] = [
  {
    name: 'postrider_endpoint_in_flight',
    help: 'Requests in flight to one URL.',
    of: ({ inFlight }) => inFlight,
  },
  {
    name: 'postrider_endpoint_limit',
    help: 'Requests that may be in flight to one URL at once, as found out.',
    of: ({ limit }) => limit,
  },
  {
    name: 'postrider_endpoint_breaker_open',
    help: '1 while deliveries to this URL are deferred unsent.',
    of: ({ breakerOpen }) => (breakerOpen ? 1 : 0),
  },
  {
    name: 'postrider_endpoint_down',
    help: '1 from the opening of this URL’s breaker until it answers again.',
    of: ({ down }) => (down ? 1 : 0),
  },
  {
    name: 'postrider_endpoint_paused',
    help: '1 while this URL gets nothing because it asked for a pause (Retry-After).',
    of: ({ paused }) => (paused ? 1 : 0),
  },
]

/**
 * What is read from a forwarder at each scrape.
 * @param heldKeptMs for how long Kafka keeps calls; null without a limit
 */
export function* exposeGauges(gauges: ForwarderGauges, heldKeptMs: number | null): Generator<string> {
  yield (
    heading('postrider_in_flight', 'gauge', 'Requests in flight.') +
    `postrider_in_flight ${gauges.inFlight()}\n`
  )
  // Taken at once, for a piece of the page may be written a while after the one before.
  const endpoints = [...gauges.endpoints()]
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
    gauges.notSetUp(),
    (id) => `postrider_destination_not_set_up{destination="${escapeValue(id)}"} 1\n`,
  )
  yield* inPieces(
    heading('postrider_endpoint_gone', 'gauge', '1 for a URL that answered 410 and gets nothing any more.'),
    gauges.gone(),
    (endpoint) => `postrider_endpoint_gone${labelsOf(endpoint)} 1\n`,
  )
  const pauses = [...gauges.pauses()]
  yield* inPieces(
    heading('postrider_destination_paused', 'gauge', '1 for a destination whose calls are held.'),
    pauses,
    ({ destinationId }) => `postrider_destination_paused{destination="${escapeValue(destinationId)}"} 1\n`,
  )
  yield* inPieces(
    heading(
      'postrider_destination_held_until_seconds',
      'gauge',
      'When Kafka begins to delete what is held for a paused destination, in seconds since 1970.',
    ),
    heldKeptMs === null ? [] : pauses,
    ({ destinationId, since }) =>
      `postrider_destination_held_until_seconds{destination="${escapeValue(destinationId)}"} ${(since + heldKeptMs!) / 1_000}\n`,
  )
  yield* exposeWaiting(gauges, heldKeptMs)
  yield* inPieces(
    heading('postrider_consumer_lag', 'gauge', 'Records behind the end, in partitions of this process.'),
    gauges.lag(),
    ({ topic, partition, lag }) =>
      `postrider_consumer_lag${labels({ topic, partition: String(partition) })} ${lag}\n`,
  )
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
