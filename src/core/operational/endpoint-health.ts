import type { Heartbeat, HeartbeatEndpoint } from '../ledger/heartbeat.ts'
import { endpointCause, shownFailure, timeText, type OperationalEvent } from './operational-event.ts'

/** An endpoint that was reported as down, and not as recovered yet. */
export interface DownEndpoint {
  destinationId: string
  urlId: string
  /** Epoch ms, by the clock of the forwarder that reported it first. */
  since: number
}

interface LiveForwarder {
  /** When the broker took its last heartbeat, epoch ms. */
  seenAt: number
  intervalMs: number
  /** Keys of the endpoints that are down there. */
  down: Set<string>
}

/** A process that has been silent for that many intervals is gone. */
const maxSilentIntervals = 3

/**
 * Which endpoints are down, folded from the heartbeats of all forwarders. An endpoint is down once a forwarder's breaker
 * has opened, and has recovered once no forwarder that lives has it open and a request has succeeded since: a forwarder
 * that was restarted knows nothing, and is no proof.
 */
export class EndpointHealth {
  readonly #forwarders = new Map<string, LiveForwarder>()
  readonly #down = new Map<string, DownEndpoint>()
  #isUsed: (destinationId: string, urlId: string) => boolean = () => true
  /** The time of the newest heartbeat, by the brokers' clock. */
  #now = -Infinity
  /** Until then a forwarder that has it open may just not have been heard yet. */
  #heardAllAt: number | null = null

  /** @param down what was reported before, by this process or one before it */
  constructor(down: Iterable<DownEndpoint> = []) {
    for (const each of down) this.#down.set(keyOf(each), each)
  }

  get down(): Iterable<DownEndpoint> {
    return this.#down.values()
  }

  /** @param appendedAt when the broker took it, epoch ms */
  take(heartbeat: Heartbeat, appendedAt: number): OperationalEvent[] {
    const { instance, roles, isLast, intervalMs, endpoints } = heartbeat
    if (!roles.includes('forwarder')) return []
    this.#now = Math.max(this.#now, appendedAt)
    this.#heardAllAt ??= appendedAt + maxSilentIntervals * intervalMs
    const isDown = (endpoint: HeartbeatEndpoint) => endpoint.downSince !== null
    if (isLast) this.#forwarders.delete(instance)
    else {
      const down = new Set(endpoints.filter(isDown).map(keyOf))
      this.#forwarders.set(instance, { seenAt: appendedAt, intervalMs, down })
    }
    for (const [id, { seenAt, intervalMs: every }] of this.#forwarders)
      if (seenAt + maxSilentIntervals * every < this.#now) this.#forwarders.delete(id)
    return endpoints.flatMap((endpoint) => this.#judge(endpoint, appendedAt) ?? [])
  }

  /**
   * Forgets endpoints that nothing is sent to any more, and passes over what forwarders that do not know it yet say of
   * them. Returns those that were down.
   */
  keep(isUsed: (destinationId: string, urlId: string) => boolean): DownEndpoint[] {
    this.#isUsed = isUsed
    const left = [...this.#down].filter(([, { destinationId, urlId }]) => !isUsed(destinationId, urlId))
    for (const [key] of left) this.#down.delete(key)
    return left.map(([, endpoint]) => endpoint)
  }

  #judge(endpoint: HeartbeatEndpoint, at: number): OperationalEvent | null {
    const { destinationId, urlId, downSince, lastSuccessAt, lastFailure } = endpoint
    if (!this.#isUsed(destinationId, urlId)) return null
    const key = keyOf(endpoint)
    const reported = this.#down.get(key)
    if (downSince !== null) {
      if (reported) return null
      this.#down.set(key, { destinationId, urlId, since: downSince })
      return {
        name: 'Endpoint Down',
        identity: `${key}/${downSince}`,
        at,
        ...endpointCause('down', destinationId, urlId),
        properties: {
          urlId,
          since: timeText(downSince),
          forwarders: { down: this.#downAt(key), total: this.#forwarders.size },
          lastResponse: shownFailure(lastFailure),
        },
      }
    }
    if (!reported || lastSuccessAt === null || lastSuccessAt < reported.since) return null
    if (this.#downAt(key) > 0 || this.#now < (this.#heardAllAt ?? Infinity)) return null
    this.#down.delete(key)
    return {
      name: 'Endpoint Recovered',
      identity: `${key}/${reported.since}`,
      at,
      ...endpointCause('down', destinationId, urlId),
      properties: { urlId, since: timeText(reported.since), recoveredAt: timeText(at) },
    }
  }

  #downAt(key: string): number {
    let count = 0
    for (const { down } of this.#forwarders.values()) if (down.has(key)) count++
    return count
  }
}

const keyOf = ({ destinationId, urlId }: Pick<DownEndpoint, 'destinationId' | 'urlId'>): string =>
  `${destinationId}/${urlId}`
