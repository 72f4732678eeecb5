import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { DeliveryRun } from './delivery-run.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { DestinationMetrics } from './ports.ts'

/**
 * A destination as the forwarder works with it: its endpoints and secret of the moment, and its lanes: first
 * attempts of one key at one destination run one after another, different keys side by side.
 */
export class DestinationRuntime {
  readonly id: string
  readonly metrics: DestinationMetrics
  enabled = true
  endpoints: readonly EndpointQueue[] = []
  #secret: KeyObject | null = null
  /** By key: the run whose turn it is; the others hang on its `next`. */
  readonly #lanes = new Map<string, DeliveryRun>()

  constructor(id: string, metrics: DestinationMetrics) {
    this.id = id
    this.metrics = metrics
  }

  setSecret(secret: string | null): void {
    this.#secret = secret === null ? null : createSecretKey(secret, 'utf8')
  }

  /** Lowercase hex HMAC-SHA1 of the body's bytes (the spec, Authentication); null without a shared secret. */
  sign(body: Uint8Array): string | null {
    return this.#secret === null ? null : createHmac('sha1', this.#secret).update(body).digest('hex')
  }

  /** True: it is the run's turn. False: it waits for the one before it, and `leave` of that one gives it back. */
  enter(run: DeliveryRun): boolean {
    if (run.key === null || run.isRetry) return true
    const first = this.#lanes.get(run.key)
    if (!first) {
      this.#lanes.set(run.key, run)
      run.last = run
      return true
    }
    first.last!.next = run
    first.last = run
    return false
  }

  /** The run has its outcome: whose turn is it now? */
  leave(run: DeliveryRun): DeliveryRun | null {
    if (run.key === null || run.isRetry || this.#lanes.get(run.key) !== run) return null
    const next = run.next
    if (next) {
      next.last = run.last
      this.#lanes.set(run.key, next)
    } else {
      this.#lanes.delete(run.key)
    }
    run.next = null
    run.last = null
    return next
  }

  /** Takes the runs out of the lanes that have waited there since before `before`, all but those whose turn it is. */
  takeWaiting(before: number): DeliveryRun[] {
    const taken: DeliveryRun[] = []
    for (const first of this.#lanes.values()) {
      while (first.next && first.next.admittedAt < before) {
        const run = first.next
        first.next = run.next
        if (first.last === run) first.last = first
        run.next = null
        taken.push(run)
      }
    }
    return taken
  }
}
