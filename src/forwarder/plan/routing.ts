import { callFilter } from '../../core/call/filter.ts'
import { isDeepStrictEqual } from 'node:util'
import { batchTermsOf } from '../../core/shape/batch.ts'
import type { RetryPolicy } from '../../core/delivery/disposition.ts'
import { ownPolicy } from '../../core/delivery/own-schedule.ts'
import { allSources, isBuiltIn } from '../../core/call/built-in-source.ts'
import type { Destination, SettingsState, Source } from '../../core/settings/settings.ts'
import { strictTermsOf } from '../../core/ordering/strict-terms.ts'
import type { Tier } from '../../core/topics.ts'
import { messageOf } from '../../errors.ts'
import type { ForwarderMetrics, PausedDestination } from '../metrics.ts'
import { EndpointQueue, type EndpointParts, type OpenTarget } from '../send/endpoint-queue.ts'
import type { StrictOrder } from '../send/strict-order.ts'
import type { EndpointClient, WebhookTransport } from '../send/webhook-transport.ts'
import { DestinationRuntime, setUp, type OpenSecret } from './destination-runtime.ts'
import type { DestinationLimiter } from '../destination-limits.ts'

export interface SourceRoute {
  enabled: boolean
  /** Enabled destinations of the source that are not paused; one that delivers to every URL stands here once for each of them. */
  destinations: readonly DestinationRuntime[]
  /** Paused ones among the enabled, in the same way; they stand here only. */
  held: readonly DestinationRuntime[]
  /** Some of them do not get every call. */
  filtered: boolean
  /** Ids of the source's disabled destinations. */
  disabled: readonly string[]
  /** Its calls are operational events: one about a destination does not go to that destination. */
  isBuiltIn: boolean
}

export interface RoutingParts {
  /** What the queues of endpoints are made with. */
  endpoints: EndpointParts
  transport: WebhookTransport
  metrics: ForwarderMetrics
  openSecret: OpenSecret
  /** Of destinations that choose no schedule of their own. */
  policy: RetryPolicy
  /** Keeps users' calls in order at destinations that want it. */
  order: StrictOrder
  /** What a destination may get at most by its settings, now and as they change; null: no limit. */
  limitOf(destination: Destination): DestinationLimiter | null
  /** A destination cannot be set up as the settings have it; with what led to it, where that is a call. */
  failed(destinationId: string, reason: string, about?: object): void
  /** Tiers of a destination's schedule are not among those of this process, which uses these. */
  lacksTiers(destinationId: string, missing: readonly string[], used: readonly Tier[]): void
}

/**
 * Source → its destinations, with their endpoints' queues, kept in step with the settings log. A destination that
 * cannot be set up (a secret whose key is unknown, a URL that is none) takes nothing: its calls are deferred until the
 * settings have changed, and all others go on. So does one whose condition takes too long.
 */
export class Routing {
  readonly #parts: RoutingParts
  readonly #routes = new Map<string, SourceRoute>()
  /** The source that a route was made from, and the destinations that subscribe to it, in the settings' order. */
  readonly #sources = new Map<string, Source>()
  readonly #linked = new Map<string, Map<number, Destination>>()
  readonly #places = new Map<string, number>()
  readonly #destinations = new Map<string, DestinationRuntime>()
  /** By destination and URL id, of destinations that deliver to every URL, or did: their lanes may not be empty yet. */
  readonly #perUrl = new Map<string, Map<string, DestinationRuntime>>()
  readonly #endpoints = new Map<string, EndpointQueue>()
  readonly #stirring = new Set<EndpointQueue>()
  /** The settings that a runtime was made from, to keep the unchanged ones. */
  readonly #applied = new Map<string, Destination>()
  /** By destination id, why it cannot be set up. */
  readonly #failures = new Map<string, string>()

  constructor(parts: RoutingParts) {
    this.#parts = parts
  }

  route(sourceId: string): SourceRoute | undefined {
    return this.#routes.get(sourceId)
  }

  destination(id: string): DestinationRuntime | undefined {
    return this.#destinations.get(id)
  }

  *destinations(): Iterable<DestinationRuntime> {
    yield* this.#destinations.values()
    for (const runtimes of this.#perUrl.values()) yield* runtimes.values()
  }

  endpoints(): Iterable<EndpointQueue> {
    return this.#endpoints.values()
  }

  /** Those that have something to do: of a hundred thousand most have nothing at any time. */
  get stirring(): ReadonlySet<EndpointQueue> {
    return this.#stirring
  }

  stirred(endpoint: EndpointQueue): void {
    this.#stirring.add(endpoint)
  }

  /** Forgets those that have come to rest; they stir again by themselves. */
  forgetResting(): void {
    for (const endpoint of this.#stirring) {
      if (!endpoint.isAtRest) continue
      this.#stirring.delete(endpoint)
      endpoint.isStirring = false
    }
  }

  /** Whatever delivers to the destination. */
  *runtimesOf(destinationId: string): Iterable<DestinationRuntime> {
    const whole = this.#destinations.get(destinationId)
    if (whole) yield whole
    yield* this.#perUrl.get(destinationId)?.values() ?? []
  }

  /** Enabled destinations that cannot be set up, by id, with the reason of each. */
  *failures(): Iterable<[destinationId: string, reason: string]> {
    for (const [id, reason] of this.#failures) if (this.#destinations.get(id)!.enabled) yield [id, reason]
  }

  /**
   * As if the destination could not be set up, until its settings change: its condition is not evaluated any more. What
   * comes meanwhile is sent later without having been asked for it.
   *
   * @param about the call for which it took too long
   */
  holdForCondition(destinationId: string, reason: string, about: object): void {
    for (const runtime of this.runtimesOf(destinationId))
      if (runtime.filter) runtime.filter = { ...runtime.filter, where: null }
    this.#failures.set(destinationId, reason)
    this.#parts.failed(destinationId, reason, about)
    for (const endpoint of this.#destinations.get(destinationId)?.endpoints ?? []) {
      endpoint.use(null)
      endpoint.goOn()
    }
  }

  /** Paused destinations, enabled or not. */
  *pauses(): Iterable<PausedDestination> {
    for (const { id, pause } of this.#applied.values())
      if (pause !== null) yield { destinationId: id, since: pause.since }
  }

  /** Only what has changed is made again: a change must not cost more the more destinations there are. */
  apply(state: SettingsState): void {
    const changed = new Set<string>()
    for (const destination of state.destinations.values()) {
      const before = this.#applied.get(destination.id)
      if (before === destination) continue
      this.#applied.set(destination.id, destination)
      this.#applyDestination(destination)
      this.#link(destination, before?.sourceIds ?? [], changed)
    }
    for (const source of allSources(state).values()) {
      if (this.#sources.get(source.id) === source && !changed.has(source.id)) continue
      this.#sources.set(source.id, source)
      this.#routes.set(source.id, this.#routeOf(source, isBuiltIn(source.id, state)))
    }
  }

  #link(destination: Destination, sourceIdsBefore: readonly string[], changed: Set<string>): void {
    const place = this.#places.get(destination.id) ?? this.#places.size
    this.#places.set(destination.id, place)
    for (const sourceId of sourceIdsBefore) {
      changed.add(sourceId)
      this.#linked.get(sourceId)?.delete(place)
    }
    for (const sourceId of destination.sourceIds) {
      changed.add(sourceId)
      const linked = this.#linked.get(sourceId) ?? new Map<number, Destination>()
      this.#linked.set(sourceId, linked.set(place, destination))
    }
  }

  #routeOf({ id, enabled }: Source, builtIn: boolean): SourceRoute {
    const linked = [...(this.#linked.get(id) ?? [])]
      .sort(([one], [other]) => one - other)
      .map(([, each]) => each)
    const planned = linked.filter((one) => one.enabled).flatMap((one) => this.#planned(one))
    return {
      enabled,
      destinations: planned.filter(({ pauseId }) => pauseId === null),
      held: planned.filter(({ pauseId }) => pauseId !== null),
      filtered: planned.some(({ filter }) => filter !== null),
      disabled: linked.filter((one) => !one.enabled).map((one) => one.id),
      isBuiltIn: builtIn,
    }
  }

  /** What calls for the destination are planned for. */
  #planned({ id, urls, options }: Destination): DestinationRuntime[] {
    if (options.deliverTo === 'any') return [this.#destinations.get(id)!]
    const runtimes = this.#perUrl.get(id)!
    return [...new Set(urls.map((url) => runtimes.get(url.id)!))]
  }

  #applyDestination(destination: Destination): void {
    const { id, urls, options, enabled, pause } = destination
    const whole = this.#destinations.get(id) ?? this.#newRuntime(id, null)
    this.#destinations.set(id, whole)
    const perUrl = this.#perUrl.get(id) ?? new Map<string, DestinationRuntime>()
    if (options.deliverTo === 'every') {
      this.#perUrl.set(id, perUrl)
      for (const url of urls) if (!perUrl.has(url.id)) perUrl.set(url.id, this.#newRuntime(id, url.id))
    }
    const before = whole.endpoints
    const policy = this.#policyOf(destination)
    const clients = this.#setUp(destination, [whole, ...perUrl.values()])
    const endpoints = [...new Set(urls.map(({ id: urlId }) => this.#endpoint(id, urlId)))]
    const limit = this.#parts.limitOf(destination)
    const batch = batchTermsOf(options)
    for (const endpoint of endpoints) {
      endpoint.limitTo(limit)
      endpoint.batchBy(batch)
      if (policy !== whole.policy) endpoint.returnBy(policy)
      endpoint.use(clients?.get(endpoint.id) ?? null)
    }
    const terms = strictTermsOf(options)
    const secretNames = new Set(destination.templateSecrets.map(({ name }) => name))
    const set = (runtime: DestinationRuntime, its: readonly EndpointQueue[]) => {
      runtime.endpoints = its
      runtime.batch = batch
      runtime.enabled = enabled
      runtime.pauseId = pause?.id ?? null
      runtime.policy = policy
      runtime.order = options.order === 'strict' ? this.#parts.order : null
      runtime.strictTerms = terms
      runtime.secretNames = secretNames
    }
    set(whole, endpoints)
    for (const [urlId, runtime] of perUrl) {
      const its = endpoints.filter((endpoint) => endpoint.id === urlId)
      set(runtime, its)
      // Its lanes drain by themselves: without a URL, the deliveries in them are skipped.
      if (its.length === 0) perUrl.delete(urlId)
    }
    for (const gone of before) if (!endpoints.includes(gone)) this.#close(gone)
    // Not before all of it is in place: what waits would be signed with a new secret, say, and sent to an old URL.
    for (const endpoint of endpoints) endpoint.goOn()
    if (!enabled || pause === null) return
    for (const endpoint of endpoints) this.#parts.endpoints.dispatcher.paused(endpoint)
  }

  #policyOf({ id, options }: Destination): RetryPolicy {
    const { policy, missing } = ownPolicy(options, this.#parts.policy)
    if (missing.length > 0) this.#parts.lacksTiers(id, missing, policy.tiers)
    return policy
  }

  /** By URL id what its requests go over; null where the destination cannot be set up. */
  #setUp(
    destination: Destination,
    runtimes: readonly DestinationRuntime[],
  ): ReadonlyMap<string, OpenTarget> | null {
    const { id, options } = destination
    const opened: EndpointClient[] = []
    try {
      // Also where nothing can be sent: what comes meanwhile is chosen by it, and what waits is rendered.
      const { filter, fault } = callFilter(options)
      for (const runtime of runtimes) runtime.filter = filter
      for (const runtime of runtimes) runtime.shapeBy(destination)
      if (fault !== null) throw new Error(fault)
      const { secrets, templateSecrets, targets } = setUp(destination, this.#parts.openSecret)
      for (const { shape } of runtimes)
        for (const name of shape.secrets)
          if (!templateSecrets.has(name))
            throw new Error(`its body names secret.${name}, and it has none such`)
      const clients = new Map<string, OpenTarget>()
      for (const [urlId, webhook] of targets) {
        const present = this.#endpoints.get(endpointKey(id, urlId))?.target
        if (present && isDeepStrictEqual(present.webhook, webhook)) {
          clients.set(urlId, present)
          continue
        }
        const client = this.#parts.transport.open(webhook)
        opened.push(client)
        clients.set(urlId, { webhook, client })
      }
      for (const runtime of runtimes) {
        runtime.setSecrets(secrets, options.standardWebhooks, templateSecrets)
        runtime.passesTraceContext = options.traceContext
      }
      this.#failures.delete(id)
      return clients
    } catch (error) {
      for (const client of opened) client.close()
      const reason = messageOf(error)
      this.#failures.set(id, reason)
      if (destination.enabled) this.#parts.failed(id, reason)
      return null
    }
  }

  #newRuntime(id: string, urlId: string | null): DestinationRuntime {
    return new DestinationRuntime(id, this.#parts.metrics.destination(id), this.#parts.policy, urlId)
  }

  #endpoint(destinationId: string, id: string): EndpointQueue {
    const key = endpointKey(destinationId, id)
    let queue = this.#endpoints.get(key)
    if (!queue) {
      queue = new EndpointQueue(destinationId, id, this.#parts.endpoints)
      this.#endpoints.set(key, queue)
    }
    return queue
  }

  #close(endpoint: EndpointQueue): void {
    endpoint.close()
    this.#endpoints.delete(endpointKey(endpoint.destinationId, endpoint.id))
    this.#stirring.delete(endpoint)
    // Deliveries that wait for it continue without it.
    this.#parts.endpoints.dispatcher.removed(endpoint)
  }
}

const endpointKey = (destinationId: string, id: string): string => `${destinationId}/${id}`
