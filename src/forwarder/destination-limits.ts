import { randomInt } from 'node:crypto'
import {
  DestinationLimit,
  type LimitSettings,
  type PartitionShare,
  type GroupShare,
} from '../core/pacing/destination-limit.ts'
import { maxAttemptCount, parseRate } from '../core/pacing/token-bucket.ts'
import type { Destination } from '../core/settings/settings.ts'
import { messageOf } from '../errors.ts'
import type { Log } from './log.ts'
import { steadyClock } from './steady-clock.ts'
import type { EndpointQueue } from './send/endpoint-queue.ts'

/** How long a topic's number of partitions is taken for true, in ms; and when a look that failed is tried again. */
const countAgeMs = 60_000
const retryCountMs = 1_000

export interface DestinationLimitsParts {
  /** Of the calls' topic, at present. */
  ownedPartitions(): number
  allPartitions(): Promise<number>
  log: Pick<Log, 'warn'>
}

/**
 * The limits that destinations have, and this process's share of them and of all endpoints: that of the calls' partitions.
 * Until it is known how many there are, nothing is sent to a destination with a limit, and the others are driven as if
 * this process were alone.
 */
export class DestinationLimits implements GroupShare {
  readonly member = randomInt(2 ** 32)
  readonly #parts: DestinationLimitsParts
  readonly #limiters = new Map<string, DestinationLimiter>()
  #all: number | null = null
  #share: PartitionShare | null = null
  #askAt = -Infinity
  #part = 1
  #isStopped = false

  constructor(parts: DestinationLimitsParts) {
    this.#parts = parts
  }

  /** As one partition of its own: a process that has none may still have retries. */
  get share(): number {
    return this.#part
  }

  /** The same object as long as the destination has a limit, whatever that is. */
  limitOf({ id, urls, options }: Destination): DestinationLimiter | null {
    const settings = limitSettings(options)
    const known = this.#limiters.get(id)
    if (settings === null) {
      this.#limiters.delete(id)
      known?.retire()
      return null
    }
    const limiter = known ?? new DestinationLimiter()
    this.#limiters.set(id, limiter)
    const now = steadyClock.now()
    limiter.change(settings, urls.length, this.#share, now)
    if (!known) this.tick(now)
    return limiter
  }

  /** Called a few times a second: partitions may have come or gone. */
  tick(now: number): void {
    if (now >= this.#askAt && !this.#isStopped) void this.#count(now)
    const owned = this.#parts.ownedPartitions()
    const all = this.#all
    if (all === null) return
    if (this.#share?.owned !== owned || this.#share.all !== all) {
      this.#share = { owned, all: Math.max(all, owned) }
      this.#part = Math.max(1, owned) / this.#share.all
      for (const limiter of this.#limiters.values()) limiter.shareIs(this.#share, now)
    }
    // What was withdrawn unsent left room.
    for (const limiter of this.#limiters.values()) limiter.grantWaiting(now)
  }

  /** Nothing is asked any more: what asks is about to be closed. */
  stop(): void {
    this.#isStopped = true
  }

  async #count(now: number): Promise<void> {
    this.#askAt = Infinity
    try {
      const all = await this.#parts.allPartitions()
      if (all > 0) this.#all = all
      this.#askAt = now + (all > 0 ? countAgeMs : retryCountMs)
      this.tick(steadyClock.now())
    } catch (error) {
      this.#askAt = now + retryCountMs
      const waits =
        this.#all === null && this.#limiters.size > 0 ? ': destinations with a limit wait for it' : ''
      this.#parts.log.warn({ error: messageOf(error) }, `the number of partitions cannot be read${waits}`)
    }
  }
}

/** Null for a destination without a limit. What is no rate, which no command would have written, is none. */
function limitSettings({ maxRate, maxInFlight }: Destination['options']): LimitSettings | null {
  const rate = maxRate === null ? null : parseRate(maxRate, maxAttemptCount)
  return rate === null && maxInFlight === null ? null : { maxRate: rate, maxInFlight }
}

type LimitedEndpoint = Pick<EndpointQueue, 'pump'>

/** One destination's limit, which its endpoints take turns at. */
export class DestinationLimiter {
  #settings: LimitSettings = { maxRate: null, maxInFlight: null }
  #endpoints = 1
  /** Null while this process's share is not known. */
  #limit: DestinationLimit | null = null
  readonly #waiting = new Set<LimitedEndpoint>()
  /** The waiting endpoint whose turn it is. */
  #granted: LimitedEndpoint | null = null
  #timer: NodeJS.Timeout | null = null

  /** Lets nothing go that waits: its destination may change in more than that. */
  change(settings: LimitSettings, endpoints: number, share: PartitionShare | null, now: number): void {
    this.#settings = settings
    this.#endpoints = Math.max(1, endpoints)
    if (share !== null) this.#adjust(share, now)
  }

  shareIs(share: PartitionShare, now: number): void {
    this.#adjust(share, now)
    this.grantWaiting(now)
  }

  #adjust(share: PartitionShare, now: number): void {
    if (this.#limit === null) this.#limit = new DestinationLimit(this.#settings, share, now)
    else this.#limit.change(this.#settings, share, now)
    this.#stopTimer()
  }

  /** Its destination has no limit any more. */
  retire(): void {
    this.#stopTimer()
    this.#waiting.clear()
  }

  allows(endpoint: LimitedEndpoint, now: number): boolean {
    const isItsTurn = this.#waiting.size === 0 || this.#granted === endpoint
    if (isItsTurn && this.#limit !== null && this.#limit.mayStart(now)) return true
    this.#waiting.add(endpoint)
    this.#wakeLater(now)
    return false
  }

  started(now: number): void {
    this.#limit?.started(now)
  }

  ended(now: number): void {
    this.#limit?.ended()
    this.grantWaiting(now)
  }

  withdrawn(): void {
    this.#limit?.withdrawn()
  }

  isFree(now: number): boolean {
    return this.#waiting.size === 0 && this.#limit !== null && this.#limit.mayStart(now)
  }

  perMs(roundTripMs: number): number {
    return (this.#limit?.perMs(roundTripMs) ?? Infinity) / this.#endpoints
  }

  /** Each waiting endpoint in its turn takes what it can; one that could take more waits again, behind the others. */
  grantWaiting(now: number): void {
    // An endpoint that is pumped may end an attempt of its own.
    if (this.#granted !== null) return
    while (this.#waiting.size > 0 && this.#limit?.mayStart(now)) {
      const [endpoint] = this.#waiting as Iterable<LimitedEndpoint> as [LimitedEndpoint]
      this.#waiting.delete(endpoint)
      this.#granted = endpoint
      endpoint.pump(now)
      this.#granted = null
    }
    if (this.#waiting.size > 0) this.#wakeLater(now)
  }

  /** Where the rate is what they wait for; otherwise an attempt that ends wakes them. */
  #wakeLater(now: number): void {
    if (this.#timer !== null || this.#limit === null || !this.#limit.hasRoom) return
    const waitMs = Math.max(1, Math.ceil(this.#limit.nextAt(now) - now))
    this.#timer = setTimeout(() => {
      this.#timer = null
      this.grantWaiting(steadyClock.now())
    }, waitMs).unref()
  }

  #stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
  }
}
