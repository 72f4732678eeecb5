import { setTimeout as delay } from 'node:timers/promises'
import { FoldedLog } from './folded-log.ts'

/** How old what is known of users may be when a retry is sent: records arrive within milliseconds otherwise. */
const maxStaleMs = 5_000
const lookAgainMs = 50

/** A log of users that deliveries are checked by: the erased ones, the suppressed ones. */
export abstract class UserLog extends FoldedLog {
  #startedAt = -Infinity
  #waiting: Promise<void> | null = null

  /** Null when everything is folded that was appended up to a moment ago; otherwise what to wait for before checking again. */
  pending(): Promise<void> | null {
    const asOf = Math.max(this.#startedAt, this.reader.freshAsOf)
    if (performance.now() - asOf < maxStaleMs) return null
    this.#waiting ??= delay(lookAgainMs).finally(() => (this.#waiting = null))
    return this.#waiting
  }

  /**
   * Folds the log to its end as of the call, then follows it. Waits for brokers and registry until the signal
   * aborts, then throws `kafka_unavailable`; `setup` when the topic is missing. Close it even if this throws.
   */
  async start(signal?: AbortSignal): Promise<void> {
    const began = performance.now()
    await this.reader.start(signal)
    this.#startedAt = began
  }

  /** Itself, once everything is folded that lay in the log at the time of the call. */
  async current(signal?: AbortSignal): Promise<this> {
    await this.reader.readToEnd(signal)
    return this
  }

  /** Idempotent. */
  close(): Promise<void> {
    return this.reader.close()
  }
}
