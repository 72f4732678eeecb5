import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { CallFilter } from '../core/destination-options.ts'
import { deliveryIdSuffix } from '../core/delivery.ts'
import type { DeliveryRun } from './delivery-run.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { AttemptSigner, DestinationMetrics } from './ports.ts'
import { StandardSigner } from './standard-webhooks.ts'

/**
 * A destination as the forwarder works with it: its endpoints and secret of the moment, and its lanes: first
 * attempts of one key at one destination run one after another, different keys side by side.
 *
 * A destination that delivers to every URL has one of these for each URL beside that of the whole: its deliveries
 * are planned for these, so each URL has its own order and its own fate.
 */
export class DestinationRuntime {
  readonly id: string
  readonly metrics: DestinationMetrics
  enabled = true
  endpoints: readonly EndpointQueue[] = []
  /** Null: every call is sent. */
  filter: CallFilter | null = null
  /** Null unless the headers of Standard Webhooks are sent. */
  signer: AttemptSigner | null = null
  readonly #idSuffix: string
  #secret: KeyObject | null = null
  /** By key: the run whose turn it is; the others hang on its `next`. */
  readonly #lanes = new Map<string, DeliveryRun>()

  /** @param urlId set where it stands for one URL of the destination */
  constructor(id: string, metrics: DestinationMetrics, urlId: string | null = null) {
    this.id = id
    this.metrics = metrics
    this.#idSuffix = deliveryIdSuffix(id, urlId)
  }

  deliveryId(messageId: string): string {
    return messageId + this.#idSuffix
  }

  /** @param secrets the active ones, the newest first: that one signs X-Signature */
  setSecrets(secrets: readonly string[], standardWebhooks: boolean): void {
    const [newest] = secrets
    this.#secret = newest === undefined ? null : createSecretKey(newest, 'utf8')
    this.signer = standardWebhooks && newest !== undefined ? new StandardSigner(secrets) : null
  }

  /** Lowercase hex HMAC-SHA1 of the body's bytes (the spec, Authentication); null without a shared secret. */
  sign(body: Uint8Array): string | null {
    return this.#secret === null ? null : createHmac('sha1', this.#secret).update(body).digest('hex')
  }

  /** Another run of its key is under way or waits. */
  isBusy(run: DeliveryRun): boolean {
    return run.key !== null && !run.isRetry && this.#lanes.has(run.key)
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
