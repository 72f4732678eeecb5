import type { Destination, Endpoint, SealedSecret, SettingsState } from '../core/settings.ts'
import { DestinationRuntime } from './destination-runtime.ts'
import { EndpointQueue, type EndpointBounds, type EndpointHost } from './endpoint-queue.ts'
import type { ForwarderMetrics, WebhookTransport } from './ports.ts'

export interface Route {
  enabled: boolean
  /** Enabled destinations of the source. */
  destinations: readonly DestinationRuntime[]
}

export interface RoutingParts {
  host: EndpointHost
  bounds: EndpointBounds
  transport: WebhookTransport
  metrics: ForwarderMetrics
  openSecret(sealed: SealedSecret): string
  /** A URL was taken out of its destination: what waits for it is done with it. */
  removed(endpoint: EndpointQueue): void
}

/** Source → its destinations, with their endpoints' queues, kept in step with the settings log. */
export class Routing {
  readonly #parts: RoutingParts
  #routes = new Map<string, Route>()
  readonly #destinations = new Map<string, DestinationRuntime>()
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

  destinations(): Iterable<DestinationRuntime> {
    return this.#destinations.values()
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
    for (const destination of state.destinations.values()) {
      const runtime = this.#destinations.get(destination.id)!
      if (!destination.enabled) continue
      for (const sourceId of destination.sourceIds) {
        const list = bySource.get(sourceId)
        if (list) list.push(runtime)
        else bySource.set(sourceId, [runtime])
      }
    }
    this.#routes = new Map(
      [...state.sources.values()].map((source) => [
        source.id,
        { enabled: source.enabled, destinations: bySource.get(source.id) ?? [] },
      ]),
    )
  }

  #applyDestination(destination: Destination): void {
    let runtime = this.#destinations.get(destination.id)
    if (!runtime) {
      runtime = new DestinationRuntime(destination.id, this.#parts.metrics.destination(destination.id))
      this.#destinations.set(destination.id, runtime)
    }
    const { openSecret } = this.#parts
    runtime.setSecret(destination.sharedSecret ? openSecret(destination.sharedSecret) : null)
    const before = runtime.endpoints
    runtime.endpoints = destination.urls.map((endpoint) => this.#endpoint(destination.id, endpoint))
    runtime.enabled = destination.enabled
    for (const gone of before) if (!runtime.endpoints.includes(gone)) this.#close(gone)
  }

  #endpoint(destinationId: string, endpoint: Endpoint): EndpointQueue {
    const key = `${destinationId}/${endpoint.id}`
    const headers: Record<string, string> = {}
    for (const { name, value } of endpoint.headers) headers[name] = this.#parts.openSecret(value)
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
