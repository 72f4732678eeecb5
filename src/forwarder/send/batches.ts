import type { Outcome } from '../../core/delivery/outcome.ts'
import { batchesScanned } from '../../core/pacing/limits.ts'
import { mostBatched, type BatchTerms } from '../../core/shape/batch.ts'
import type { DestinationLimiter } from '../destination-limits.ts'
import type { Attempt } from './active-delivery.ts'
import type { AttemptQueues } from './endpoint-admission.ts'
import type { SendVerdict } from './dispatcher.ts'
import type { EndpointQueue } from './endpoint-queue.ts'
import type { AttemptSink, SentAgainFor } from './webhook-transport.ts'

/** Attempts that go out in one request, and have one outcome. */
export class AttemptBatch implements AttemptSink {
  readonly attempts: readonly Attempt[]
  /** As those of an attempt that goes alone. */
  paceRound: number | null = 0
  limit: DestinationLimiter | null = null
  readonly #endpoint: EndpointQueue

  constructor(attempts: readonly Attempt[], endpoint: EndpointQueue) {
    this.attempts = attempts
    this.#endpoint = endpoint
  }

  onOutcome(outcome: Outcome): void {
    this.#endpoint.batchEnded(this, outcome)
  }

  withdraw(): boolean {
    return this.#endpoint.withdrawBatch(this)
  }

  sendAgain(why: SentAgainFor): boolean {
    return this.#endpoint.sendBatchAgain(this, why)
  }

  mayStillGo(): boolean {
    return this.#endpoint.mayStillGo(this.attempts)
  }
}

/** What was removed from an endpoint's queue: what goes out, and what does not, in its order. */
export interface Taken {
  attempts: Attempt[]
  ended: { attempt: Attempt; verdict: Exclude<SendVerdict, 'send' | 'wait'> | 'over_budget' }[]
}

/**
 * Which attempts at one endpoint go out together. First attempts of one key keep their order without waiting for each
 * other: any number of them may be in one request, but none goes out while an earlier one is on the wire.
 */
export class Batches {
  terms: BatchTerms
  /** Keys of first attempts that are on the wire. */
  readonly #keys = new Set<string>()
  #bytesOnWire = 0
  /** How many more calls that may go out make a full batch; 0: not known, for nothing was found to be behind its key. */
  #missing = 0
  /** Where some are missing: from when on those that may go out wait for no others. */
  #dueAt = Infinity
  #wake: { timer: NodeJS.Timeout; at: number } | null = null

  constructor(terms: BatchTerms) {
    this.terms = terms
  }

  /** @param bytes of all that has a place at the endpoint */
  isDue(queues: AttemptQueues, bytes: number, now: number): boolean {
    if (queues.first !== null && queues.first.most < mostBatched) return true
    const isFull = queues.length >= this.terms.size || bytes - this.#bytesOnWire >= this.terms.bytes
    return now >= this.#dueFrom(queues) || (isFull && this.#missing === 0)
  }

  #dueFrom({ earliestAt }: AttemptQueues): number {
    return this.#missing > 0 ? this.#dueAt : earliestAt
  }

  /** An earlier one of its key is on the wire. */
  isBehind(attempt: Attempt): boolean {
    const key = keyOf(attempt)
    return key !== null && this.#keys.has(key)
  }

  /** One was queued as the last of `length`. */
  queued(attempt: Attempt, length: number): void {
    if (this.#missing === 0 || length > this.#scanned || this.isBehind(attempt)) return
    this.#missing--
    this.#dueAt = Math.min(this.#dueAt, attempt.queuedAt)
  }

  /**
   * Removes what the next request holds, and what is not to be sent at all. Neither, where what may go out waits for
   * others still.
   *
   * @param isUrgent it waits for nobody
   */
  take(
    queues: AttemptQueues,
    now: number,
    isUrgent: boolean,
    verdictOf: (attempt: Attempt) => SendVerdict,
    mayRetry: () => boolean,
  ): Taken {
    const { size, bytes } = this.terms
    const attempts: Attempt[] = []
    const ended: Taken['ended'] = []
    const looked: Attempt[] = []
    const passed: Attempt[] = []
    let most = size
    // What an array begins with.
    let length = 1
    let isFull = false
    let mayWait = false
    for (let left = this.#scanned; left > 0 && !isFull && !mayWait; left--) {
      const attempt = queues.shift()
      if (attempt === null) break
      const fate = this.#fateOf(attempt, verdictOf(attempt), mayRetry)
      if (fate !== 'send' && fate !== 'wait' && fate !== 'behind') {
        ended.push({ attempt, verdict: fate })
        continue
      }
      looked.push(attempt)
      const [first = attempt] = attempts
      const { destination, delivery } = attempt.active
      const its = destination.batchedBytes(delivery)
      const fits = attempt === first || (attempt.most === first.most && length + its <= bytes)
      if (fate === 'send' && fits) {
        attempts.push(attempt)
        length += its
        most = Math.min(size, attempt.most)
        isFull = attempts.length === most || length >= bytes
      } else {
        passed.push(attempt)
        isFull = fate === 'send'
        mayWait = fate === 'wait'
      }
    }
    const dueAt = attempts.reduce((earliest, { queuedAt }) => Math.min(earliest, queuedAt), Infinity)
    const goes = isFull || isUrgent || most < size || dueAt <= now
    this.#missing = goes || mayWait ? 0 : size - attempts.length
    this.#dueAt = dueAt
    for (const attempt of (goes ? passed : looked).reverse()) queues.unshift(attempt)
    if (!goes) return { attempts: [], ended }
    return { attempts, ended }
  }

  #fateOf(
    attempt: Attempt,
    verdict: SendVerdict,
    mayRetry: () => boolean,
  ): SendVerdict | 'behind' | 'over_budget' {
    if (verdict !== 'send') return verdict
    if (this.isBehind(attempt)) return 'behind'
    return attempt.active.wasAttempted && !mayRetry() ? 'over_budget' : 'send'
  }

  started({ attempts }: AttemptBatch): void {
    for (const attempt of attempts) {
      const key = keyOf(attempt)
      if (key !== null) this.#keys.add(key)
      this.#bytesOnWire += attempt.active.delivery.body.length
    }
  }

  /** It has an outcome, or was not sent after all. */
  ended({ attempts }: AttemptBatch): void {
    for (const attempt of attempts) {
      const key = keyOf(attempt)
      if (key !== null) this.#keys.delete(key)
      this.#bytesOnWire -= attempt.active.delivery.body.length
    }
    this.#missing = 0
  }

  /** Calls `pump` when what is queued waits for no others any more. */
  wakeWhenDue(queues: AttemptQueues, now: number, pump: () => void): void {
    const at = this.#dueFrom(queues)
    // Where it is due and may not go yet, whoever lets it go pumps.
    if (at === Infinity || at <= now || (this.#wake !== null && this.#wake.at <= at)) return
    clearTimeout(this.#wake?.timer)
    const timer = setTimeout(
      () => {
        this.#wake = null
        pump()
      },
      Math.ceil(at - now),
    ).unref()
    this.#wake = { timer, at }
  }

  get #scanned(): number {
    return this.terms.size * batchesScanned
  }
}

/** Whose order it keeps; null: nobody's, as retries overtake. */
const keyOf = ({ active }: Attempt): string | null => (active.isRetry ? null : active.key)
