import { callFilter } from '../core/destination-options.ts'
import type { PaceBounds } from '../core/endpoint-pace.ts'
import { headerPlace, sharedSecretPlace, type SecretPlace } from '../core/secret-place.ts'
import { activeSecrets } from '../core/settings-secrets.ts'
import type { Destination, Endpoint, SealedSecret, SettingsState } from '../core/settings.ts'
import { DestinationRuntime } from './destination-runtime.ts'
import type { EndpointHost } from './endpoint-host.ts'
import { EndpointQueue } from './endpoint-queue.ts'
import type { ForwarderMetrics, WebhookTransport } from './ports.ts'

export interface Route {
  enabled: boolean
  /** Enabled destinations of the source; one that delivers to every URL stands here once for each of them. */
  destinations: readonly DestinationRuntime[]
  /** Some of them do not get every call. */
  filtered: boolean
  /** Ids of the source's disabled destinations. */
  disabled: readonly string[]
}

export interface RoutingParts {
  host: EndpointHost
  bounds: PaceBounds
  transport: WebhookTransport
  metrics: ForwarderMetrics
  openSecret(sealed: SealedSecret, place: SecretPlace): string
  /** A URL was taken out of its destination: what waits for it is done with it. */
  removed(endpoint: EndpointQueue): void
}

/** Source → its destinations, with their endpoints' queues, kept in step with the settings log. */
export class Routing {
  readonly #parts: RoutingParts
  #routes = new Map<string, Route>()
  readonly #destinations = new Map<string, DestinationRuntime>()
  /** By destination and URL id, of destinations that deliver to every URL, or did: their lanes may not be empty yet. */
  readonly #perUrl = new Map<string, Map<string, DestinationRuntime>>()
  readonly #endpoints = new Map<string, EndpointQueue>()
  /** What of the settings a runtime was made of, to leave alone what did not change. */
  readonly #applied = new Map<string, Destination>()

  constructor(parts: RoutingParts) {
    this.#parts = parts
  }

  route(sourceId: string): Route | undefined {
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

  /** Throws `secrets_key` where a secret cannot be opened: nothing may go out unsigned for that. */
  apply(state: SettingsState): void {
    for (const destination of state.destinations.values()) {
      if (this.#applied.get(destination.id) === destination) continue
      this.#applied.set(destination.id, destination)
      this.#applyDestination(destination)
    }
    const bySource = new Map<string, DestinationRuntime[]>()
    const disabled = new Map<string, string[]>()
    for (const destination of state.destinations.values()) {
      if (!destination.enabled) {
        for (const sourceId of destination.sourceIds) {
          disabled.set(sourceId, [...(disabled.get(sourceId) ?? []), destination.id])
        }
        continue
      }
      const runtimes = this.#planned(destination)
      for (const sourceId of destination.sourceIds) {
        const list = bySource.get(sourceId)
        if (list) list.push(...runtimes)
        else bySource.set(sourceId, [...runtimes])
      }
    }
    this.#routes = new Map(
      [...state.sources.values()].map(({ id, enabled }) => {
        const destinations = bySource.get(id) ?? []
        const filtered = destinations.some(({ filter }) => filter !== null)
        return [id, { enabled, destinations, filtered, disabled: disabled.get(id) ?? [] }]
      }),
    )
  }

  /** What calls are planned for. */
  #planned({ id, urls, options }: Destination): DestinationRuntime[] {
    if (options.deliverTo === 'any') return [this.#destinations.get(id)!]
    const runtimes = this.#perUrl.get(id)!
    return urls.map((url) => runtimes.get(url.id)!)
  }

  #applyDestination(destination: Destination): void {
    const { id, urls, options, enabled } = destination
    const whole = this.#destinations.get(id) ?? this.#newRuntime(id, null)
    this.#destinations.set(id, whole)
    const perUrl = this.#perUrl.get(id) ?? new Map<string, DestinationRuntime>()
    if (options.deliverTo === 'every') {
      this.#perUrl.set(id, perUrl)
      for (const url of urls) if (!perUrl.has(url.id)) perUrl.set(url.id, this.#newRuntime(id, url.id))
    }
    const secrets = activeSecrets(destination).map((sealed) =>
      this.#parts.openSecret(sealed, sharedSecretPlace(id)),
    )
    const filter = callFilter(options)
    const before = whole.endpoints
    const endpoints = urls.map((endpoint) => this.#endpoint(id, endpoint))
    const set = (runtime: DestinationRuntime, its: readonly EndpointQueue[]) => {
      runtime.setSecrets(secrets, options.standardWebhooks)
      runtime.filter = filter
      runtime.endpoints = its
      runtime.enabled = enabled
    }
    set(whole, endpoints)
    for (const [urlId, runtime] of perUrl) {
      const its = endpoints.filter((endpoint) => endpoint.id === urlId)
      set(runtime, its)
      // Its lanes end by themselves: without a URL, what waits in them is skipped.
      if (its.length === 0) perUrl.delete(urlId)
    }
    for (const gone of before) if (!endpoints.includes(gone)) this.#close(gone)
  }

  #newRuntime(id: string, urlId: string | null): DestinationRuntime {
    return new DestinationRuntime(id, this.#parts.metrics.destination(id), urlId)
  }

  #endpoint(destinationId: string, endpoint: Endpoint): EndpointQueue {
    const key = `${destinationId}/${endpoint.id}`
    const headers = Object.fromEntries(
      endpoint.headers.map(({ name, value }) => [
        name,
        this.#parts.openSecret(value, headerPlace(destinationId, endpoint.url, name)),
      ]),
    )
    const target = JSON.stringify([endpoint.url, headers])
    const existing = this.#endpoints.get(key)
    if (existing?.target === target) return existing
    const client = this.#parts.transport.open({ url: endpoint.url, headers })
    if (existing) {
      // The queue, its limits and what waits in it stay; requests on the wire end on the old connections.
      existing.client.close()
      existing.client = client
      existing.target = target
      return existing
    }
    const queue = new EndpointQueue(
      destinationId,
      endpoint.id,
      client,
      target,
      this.#parts.host,
      this.#parts.bounds,
    )
    this.#endpoints.set(key, queue)
    return queue
  }

  #close(endpoint: EndpointQueue): void {
    endpoint.closed = true
    endpoint.client.close()
    this.#endpoints.delete(`${endpoint.destinationId}/${endpoint.id}`)
    this.#parts.removed(endpoint)
  }
}
