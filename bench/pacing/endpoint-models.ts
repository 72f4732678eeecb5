import type { Outcome, OutcomeKind } from '../../src/core/delivery/outcome.ts'

/** How long a request may take, in ms (WEBHOOK_TIMEOUT). */
export const timeoutMs = 5_000

/** A receiver: what becomes of a request that arrives now. */
export type EndpointModel = (now: number) => Outcome

const outcome = (kind: OutcomeKind, status: number | null, durationMs: number): Outcome => ({
  kind,
  status,
  retryAfterMs: null,
  body: null,
  durationMs,
  detail: null,
})

const answeredIn = (ms: number): Outcome =>
  ms <= timeoutMs ? outcome('success', 200, ms) : outcome('timeout', null, timeoutMs)

export const healthy: EndpointModel = () => answeredIn(20)
/** Takes from 20 to 180 ms, whatever comes. */
export const wavering =
  (random: () => number): EndpointModel =>
  () =>
    answeredIn(20 + 160 * random())
/** Takes 100 ms, and answers that share with 503, whatever comes. */
export const flaky =
  (share: number, random: () => number): EndpointModel =>
  () =>
    random() < share ? outcome('status_5xx', 503, 100) : answeredIn(100)
export const hangs: EndpointModel = () => answeredIn(Infinity)
/** Nothing listens. */
const refusesConnections: EndpointModel = () => outcome('network', null, 1)

export const deadUntil =
  (until: number, then: EndpointModel): EndpointModel =>
  (now) =>
    now < until ? refusesConnections(now) : then(now)

/** What it answers while its queue is full. */
export interface Refusal {
  /** Requests that may wait. */
  queue: number
  status: 429 | 503
  retryAfterMs: number | null
}

/** Of one worker of a server, on average. */
const serviceMs = 100

/**
 * As many workers as it takes for `perSecond` and one queue; each request takes 50 to 150 ms. Requests that their sender
 * gave up take their turn too, as most servers do not notice.
 */
export function queueing(
  perSecond: number,
  random: () => number,
  refusal: Refusal | null = null,
): EndpointModel {
  const workers = Math.max(1, Math.round((perSecond * serviceMs) / 1_000))
  const meanMs = (workers / perSecond) * 1_000
  const freeAt = new Array<number>(workers).fill(0)
  return (now) => {
    const first = freeAt.indexOf(Math.min(...freeAt))
    const starts = Math.max(now, freeAt[first]!)
    // As many come before it as the workers finish until its turn.
    const waiting = ((starts - now) / meanMs) * workers
    if (refusal !== null && waiting > refusal.queue) {
      const kind = refusal.status === 429 ? 'status_429' : 'status_5xx'
      return { ...outcome(kind, refusal.status, 5), retryAfterMs: refusal.retryAfterMs }
    }
    freeAt[first] = starts + meanMs * (0.5 + random())
    return answeredIn(freeAt[first]! - now)
  }
}
