import { maxQuotaCount, parseRate, type Rate, TokenBucket } from '../core/pacing/token-bucket.ts'
import type { Source } from '../core/settings/settings.ts'

type RatedSource = Pick<Source, 'id' | 'maxRate'>

/** Why a source must wait: it exceeds its own quota, or what any source may send. */
export interface RateExcess {
  by: 'quota' | 'limit'
  waitMs: number
}

/** A source's quota, as the settings have it. */
interface Quota {
  maxRate: string
  bucket: TokenBucket
}

/** Senders whose refused calls are remembered, of all sources: those beyond them that were charged longest ago are not. */
const maxSenders = 10_000

/**
 * Limits the calls a second of each source: by one limit that holds for all of them, because the partitions are
 * shared, first in, first out, and a source that floods them delays the deliveries of all others; and by the source's
 * own quota where it has one. A request is admitted whole while its source has anything left; one large batch may go
 * beyond it, and the source then waits the longer.
 *
 * Calls that were not taken (invalid ones, repeats, those of bots that are dropped) cost no partition anything. They are
 * charged to their sender alone, by the same limit: write keys are public, and whoever has one could otherwise keep
 * everybody else of its source out, with ten thousand invalid calls in 200 bytes of gzip.
 */
export class SourceRates {
  readonly #limit: Rate | null
  readonly #now: () => number
  /** There are as many of either as there ever were sources while this process ran. */
  readonly #limits = new Map<string, TokenBucket>()
  readonly #quotas = new Map<string, Quota>()
  /** By source and sender, those charged last at the end. */
  readonly #senders = new Map<string, TokenBucket>()

  /** `perSecond` is Infinity for no limit; `now` is in ms, and never goes back. */
  constructor(perSecond: number, now: () => number) {
    this.#limit = perSecond === Infinity ? null : { count: perSecond, perMs: 1_000 }
    this.#now = now
  }

  /** Why the source, or this sender of it, must wait, and for how long; null: it may send now. */
  excess(source: RatedSource, sender: string): RateExcess | null {
    if (this.#limit === null && source.maxRate === null) return null
    const now = this.#now()
    const quotaMs = this.#quotaOf(source, now)?.waitMs(now) ?? 0
    // Nearly always there are none.
    const senderMs =
      this.#senders.size === 0 ? 0 : (this.#senders.get(senderKey(source, sender))?.waitMs(now) ?? 0)
    const limitMs = Math.max(this.#limitOf(source, now)?.waitMs(now) ?? 0, senderMs)
    if (quotaMs === 0 && limitMs === 0) return null
    return quotaMs >= limitMs ? { by: 'quota', waitMs: quotaMs } : { by: 'limit', waitMs: limitMs }
  }

  /** Counts calls of a request for which there was no excess: those that were taken, and those that were not. */
  count(source: RatedSource, taken: number, sender: string, notTaken: number): void {
    if (this.#limit === null && source.maxRate === null) return
    const now = this.#now()
    this.#quotaOf(source, now)?.take(now, taken)
    this.#limitOf(source, now)?.take(now, taken)
    if (notTaken > 0) this.#charge(senderKey(source, sender), notTaken, now)
  }

  /** Calls that counted as taken were not written. A quota that was changed since then gets nothing of it. */
  giveBack({ id, maxRate }: RatedSource, calls: number): void {
    const quota = this.#quotas.get(id)
    if (quota?.maxRate === maxRate) quota.bucket.giveBack(calls)
    this.#limits.get(id)?.giveBack(calls)
  }

  #charge(key: string, calls: number, now: number): void {
    if (this.#limit === null) return
    const bucket = this.#senders.get(key) ?? new TokenBucket(this.#limit, now)
    bucket.take(now, calls)
    this.#senders.delete(key)
    this.#senders.set(key, bucket)
    if (this.#senders.size > maxSenders) this.#senders.delete(this.#senders.keys().next().value!)
  }

  #limitOf({ id }: RatedSource, now: number): TokenBucket | null {
    if (this.#limit === null) return null
    let bucket = this.#limits.get(id)
    if (bucket === undefined) {
      bucket = new TokenBucket(this.#limit, now)
      this.#limits.set(id, bucket)
    }
    return bucket
  }

  #quotaOf({ id, maxRate }: RatedSource, now: number): TokenBucket | null {
    if (maxRate === null) return null
    let quota = this.#quotas.get(id)
    if (quota?.maxRate !== maxRate) {
      const rate = parseRate(maxRate, maxQuotaCount)
      if (rate === null) return null
      quota = { maxRate, bucket: new TokenBucket(rate, now) }
      this.#quotas.set(id, quota)
    }
    return quota.bucket
  }
}

/** No id of a source has a space in it. */
const senderKey = ({ id }: RatedSource, sender: string): string => `${id} ${sender}`
