import type { Attempt } from './active-delivery.ts'
import { IntrusiveQueue } from '../../core/intrusive-queue.ts'

/** The attempts that wait at one endpoint, in two queues: due retries go before new calls. */
export class AttemptQueues {
  readonly #retries = new IntrusiveQueue<Attempt>()
  readonly #calls = new IntrusiveQueue<Attempt>()

  get length(): number {
    return this.#retries.length + this.#calls.length
  }

  /** The next one to be sent. */
  get first(): Attempt | null {
    return this.#retries.first ?? this.#calls.first
  }

  push(attempt: Attempt): void {
    this.#of(attempt.active.isRetry).push(attempt)
  }

  unshift(attempt: Attempt): void {
    this.#of(attempt.active.isRetry).unshift(attempt)
  }

  /** Removes `first`. */
  shift(): Attempt | null {
    return this.#retries.shift() ?? this.#calls.shift()
  }

  /** For how long the first retry, or the first call, has waited, in ms; 0 when none waits. */
  waitMs(isRetry: boolean, now: number): number {
    const { first } = this.#of(isRetry)
    return first === null ? 0 : now - first.queuedAt
  }

  /** Since when the first one has waited, or from when on it will; infinite when none does. */
  get earliestAt(): number {
    const [retry, call] = [this.#retries.first, this.#calls.first]
    return Math.min(retry?.queuedAt ?? Infinity, call?.queuedAt ?? Infinity)
  }

  longestWaitMs(now: number): number {
    return Math.max(this.waitMs(false, now), this.waitMs(true, now))
  }

  /** Removes attempts that have waited for `waitMs`, at most `max`; all of them where that is -Infinity. */
  take(now: number, waitMs: number, max: number): Attempt[] {
    const taken: Attempt[] = []
    for (const queue of [this.#retries, this.#calls]) {
      while (taken.length < max && queue.first && now - queue.first.queuedAt >= waitMs)
        taken.push(queue.shift()!)
    }
    return taken
  }

  /** Removes attempts of lost partitions, wherever they are. */
  takeLost(): Attempt[] {
    const lost: Attempt[] = []
    for (const queue of [this.#retries, this.#calls]) {
      for (const attempt of queue.truncate(0)) {
        if (attempt.active.work.partition.alive) queue.push(attempt)
        else lost.push(attempt)
      }
    }
    return lost
  }

  #of(isRetry: boolean): IntrusiveQueue<Attempt> {
    return isRetry ? this.#retries : this.#calls
  }
}
