import type {
  DestinationMetrics,
  EndpointGauges,
  ForwarderGauges,
  ForwarderMetrics,
} from '../../forwarder/metrics.ts'
import { DestinationCounters, exposeDestinations } from './destination-counts.ts'
import { escapeValue, heading, inPieces, labels } from './exposition.ts'
import type { Exposed } from './exposition.ts'
import { Histogram } from './histogram.ts'
import { ProduceDurations } from './produce-durations.ts'

/** Ids come from records: beyond this many of one kind, the rest is counted under `other`. */
const maxLabels = 10_000
const other = 'other'

const latenessBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]

/** Counts what the forwarder does, and shows it. The gauges are read at each scrape. */
export class ForwarderCounts implements ForwarderMetrics, Exposed {
  readonly #destinations = new Map<string, DestinationCounters>()
  readonly #retries = new Map<string, number>()
  readonly #lost = new Map<string, number>()
  readonly #lateness = new Histogram(latenessBounds)
  readonly #produce: ProduceDurations
  readonly #showsProduce: boolean
  #gauges: ForwarderGauges | null = null

  /** `shared` is counted into, and shown by the part that shares it. */
  constructor(shared?: ProduceDurations) {
    this.#produce = shared ?? new ProduceDurations()
    this.#showsProduce = shared === undefined
  }

  destination(id: string): DestinationMetrics {
    const known = this.#destinations.get(id)
    if (known) return known
    if (this.#destinations.size >= maxLabels && id !== other) return this.destination(other)
    const made = new DestinationCounters(id)
    this.#destinations.set(id, made)
    return made
  }

  retryScheduled(tier: string): void {
    add(this.#retries, tier, 1)
  }

  retryLateness(seconds: number): void {
    this.#lateness.observe(seconds)
  }

  lostOffsets(topic: string, count: number): void {
    add(this.#lost, topic, count)
  }

  produced(seconds: number): void {
    this.#produce.observe(seconds)
  }

  /** The last tallies given to it are read. */
  watch(gauges: ForwarderGauges): void {
    this.#gauges = gauges
  }

  *expose(): Generator<string> {
    yield* exposeDestinations([...this.#destinations.values()])
    yield counters(
      'postrider_retries_scheduled_total',
      'Deliveries scheduled for a retry.',
      'tier',
      this.#retries,
    )
    yield (
      heading('postrider_retry_lateness_seconds', 'histogram', 'From due to the start of the attempt.') +
      this.#lateness.lines('postrider_retry_lateness_seconds', '')
    )
    yield counters(
      'postrider_lost_offsets_total',
      'Records that retention removed unread.',
      'topic',
      this.#lost,
    )
    if (this.#showsProduce) yield* this.#produce.expose()
    if (this.#gauges) yield* exposeGauges(this.#gauges)
  }
}

function add(counts: Map<string, number>, label: string, count: number): void {
  const known = counts.has(label) || counts.size < maxLabels ? label : other
  counts.set(known, (counts.get(known) ?? 0) + count)
}

function counters(name: string, help: string, label: string, counts: ReadonlyMap<string, number>): string {
  let text = heading(name, 'counter', help)
  for (const [value, count] of counts) text += `${name}${labels({ [label]: value })} ${count}\n`
  return text
}

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
    name: 'postrider_endpoint_paused',
    help: '1 while this URL gets nothing because it asked for a pause (Retry-After).',
    of: ({ paused }) => (paused ? 1 : 0),
  },
]

function* exposeGauges(gauges: ForwarderGauges): Generator<string> {
  yield (
    heading('postrider_in_flight', 'gauge', 'Requests in flight.') +
    `postrider_in_flight ${gauges.inFlight()}\n`
  )
  // Taken at once, for a piece of the page may be written a while after the one before.
  const endpoints = [...gauges.endpoints()]
  const labelsOf = (endpoint: EndpointGauges) =>
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
    heading('postrider_consumer_lag', 'gauge', 'Records behind the end, in partitions of this process.'),
    gauges.lag(),
    ({ topic, partition, lag }) =>
      `postrider_consumer_lag${labels({ topic, partition: String(partition) })} ${lag}\n`,
  )
}
