import type { DestinationMetrics, ForwarderGauges, ForwarderMetrics } from '../../forwarder/metrics.ts'
import type { PlanMode } from '../../core/tracking-plan/tracking-plan.ts'
import type { Retention } from '../kafka/admin/retention.ts'
import { ConnectionCounts } from '../webhook/connection-counts.ts'
import { DestinationCounters, exposeDestinations } from './destination-counts.ts'
import { defaultOwnSeries, heading, labels, other, type Exposed, Histogram } from './exposition.ts'
import { exposeGauges } from './forwarder-gauges.ts'
import { ProduceDurations } from './produce-durations.ts'

/** Topics and tiers come from settings: there are never as many. */
const maxLabels = 1_000
/** What belongs to no destination: a closed set, which has its place in any case. */
const noDestination = 'none'

const latenessBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800]

/** Counts what the forwarder does, and shows it. The gauges are read at each scrape. */
export class ForwarderCounts implements ForwarderMetrics, Exposed {
  readonly #destinations = new Map<string, DestinationCounters>()
  readonly #retries = new Map<string, number>()
  readonly #lost = new Map<string, number>()
  readonly #violations: Record<PlanMode, Map<string, number>> = { report: new Map(), block: new Map() }
  readonly #lateness = new Histogram(latenessBounds)
  readonly #produce: ProduceDurations
  readonly #showsProduce: boolean
  readonly #maxDestinations: number
  /** Counted by the client that sends webhooks. */
  readonly connections = new ConnectionCounts()
  #gauges: ForwarderGauges | null = null
  /** As it was read last. */
  retention: Retention = { callsMs: null, heldMs: null }

  /**
   * @param shared is counted into, and shown by the part that shares it
   * @param maxDestinations have series of their own, the first ones; the others are counted as `other`
   */
  constructor(shared?: ProduceDurations, maxDestinations = defaultOwnSeries) {
    this.#maxDestinations = maxDestinations
    this.#produce = shared ?? new ProduceDurations()
    this.#showsProduce = shared === undefined
  }

  destination(id: string): DestinationMetrics {
    const known = this.#destinations.get(id)
    if (known) return known
    if (!this.#isOwn(id)) return this.destination(other)
    const made = new DestinationCounters(id)
    this.#destinations.set(id, made)
    return made
  }

  /** Whether a destination has series of its own, or would have. */
  #isOwn(id: string): boolean {
    if (this.#destinations.has(id) || id === other || id === noDestination) return true
    const others = Number(this.#destinations.has(other)) + Number(this.#destinations.has(noDestination))
    return this.#destinations.size - others < this.#maxDestinations
  }

  retryScheduled(tier: string, count = 1): void {
    add(this.#retries, tier, count)
  }

  retryLateness(seconds: number): void {
    this.#lateness.observe(seconds)
  }

  /** Shows these topics before anything of them is lost: an increase is only seen on a series that was there. */
  watchLosses(topics: readonly string[]): void {
    for (const topic of topics) add(this.#lost, topic, 0)
  }

  lostOffsets(topic: string, count: number): void {
    add(this.#lost, topic, count)
  }

  planViolations(sourceId: string, mode: PlanMode, count: number): void {
    add(this.#violations[mode], sourceId, count)
  }

  produced(seconds: number): void {
    this.#produce.observe(seconds)
  }

  /** The last tallies given to it are read. */
  watch(gauges: ForwarderGauges): void {
    this.#gauges = gauges
  }

  /** Null before the forwarder runs. */
  get gauges(): ForwarderGauges | null {
    return this.#gauges
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
      'Records that are gone and were not delivered.',
      'topic',
      this.#lost,
    )
    yield violationLines(this.#violations)
    yield connectionLines(this.connections)
    if (this.#showsProduce) yield* this.#produce.expose()
    if (this.#gauges) yield* exposeGauges(this.#gauges, this.retention, (id) => this.#isOwn(id))
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

function violationLines(violations: Record<PlanMode, ReadonlyMap<string, number>>): string {
  const name = 'postrider_plan_violations_total'
  let text = heading(name, 'counter', 'Violations of tracking plans.')
  for (const [mode, counts] of Object.entries(violations))
    for (const [source, count] of counts) text += `${name}${labels({ source, mode })} ${count}\n`
  return text
}

const families: readonly (readonly [field: keyof ConnectionCounts, name: string, help: string])[] = [
  ['opened', 'connections_opened', 'Connections opened to endpoints.'],
  ['resumed', 'connections_resumed', 'Of these, those that took up a TLS session.'],
  ['retired', 'connections_retired', 'Connections ended because they had been used for long enough.'],
  ['restarts', 'requests_restarted', 'Requests that went to a new connection because theirs had ended.'],
  ['malformed', 'malformed_responses', 'Responses that are not HTTP/1.1, or more than is read of one.'],
]

/** The connections of all endpoints together: they are shared by host. */
export function connectionLines(counts: Readonly<ConnectionCounts>): string {
  const lines = families.map(([field, name, help]) => {
    const family = `postrider_webhook_${name}_total`
    return `${heading(family, 'counter', help)}${family} ${counts[field]}\n`
  })
  return lines.join('')
}
