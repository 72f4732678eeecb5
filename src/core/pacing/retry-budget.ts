import { wholeGroup, type GroupShare } from './destination-limit.ts'
import { budgetWindowMs } from './limits.ts'

/**
 * How many retries an endpoint may get: the budget of Finagle's RetryBudget (first attempts earn a share of a retry
 * each, and a trickle is always allowed), spent as gRPC's retry throttling spends it (gRFC A6): only by retries that
 * fail, so that an endpoint that recovered gets everything that waits for it, however much that is.
 *
 * So a retry goes out only while those that failed in the last ten minutes, without those that the trickle paid for,
 * are fewer than `share` of the first attempts of these ten minutes, or the trickle has something left; what is under
 * way by then may fail on top of it. It is counted over minutes because retries come minutes after what earned them.
 * The trickle is for the whole group, and each member has its part. Times in ms, by any clock that never goes back.
 */
export interface BudgetBounds {
  /** Failed retries per first attempt. */
  share: number
  /** Failed retries that are free in any case, a second, and how many of them can be saved up. */
  perSecond: number
  burst: number
}

const slotCount = 10
const slotMs = budgetWindowMs / slotCount

export class RetryBudget {
  readonly #bounds: BudgetBounds
  readonly #group: GroupShare
  /** Per minute; failed retries without those that the trickle paid for. */
  readonly #firsts: number[] = new Array<number>(slotCount).fill(0)
  readonly #failed: number[] = new Array<number>(slotCount).fill(0)
  #slot = 0
  #slotEnd = -Infinity
  #allFirsts = 0
  #allFailed = 0
  #free: number
  #refilledAt = -Infinity

  constructor(bounds: BudgetBounds, group: GroupShare = wholeGroup) {
    this.#bounds = bounds
    this.#group = group
    this.#free = Infinity
  }

  /** Whether a retry may be sent now. */
  allows(now: number): boolean {
    return this.#hasEarned(now) || this.#freeAt(now) >= 1
  }

  /** A first attempt was made, whatever came of it. */
  firstAttempt(now: number): void {
    if (now >= this.#slotEnd) this.#advance(now)
    this.#firsts[this.#slot]!++
    this.#allFirsts++
  }

  retryFailed(now: number): void {
    if (now >= this.#slotEnd) this.#advance(now)
    if (this.#hasEarned(now)) {
      this.#failed[this.#slot]!++
      this.#allFailed++
      return
    }
    this.#free = this.#freeAt(now) - 1
    this.#refilledAt = Math.max(now, this.#refilledAt)
  }

  /** Whether the first attempts of the last ten minutes pay for one more. */
  #hasEarned(now: number): boolean {
    let firsts = this.#allFirsts
    let failed = this.#allFailed
    for (let passed = this.#slotsPassed(now); passed > 0; passed--) {
      const slot = (this.#slot + passed) % slotCount
      firsts -= this.#firsts[slot]!
      failed -= this.#failed[slot]!
    }
    return failed + 1 <= firsts * this.#bounds.share
  }

  /** How many free retries there are at `now`. */
  #freeAt(now: number): number {
    const { perSecond, burst } = this.#bounds
    const { share } = this.#group
    const since = Math.max(0, now - this.#refilledAt)
    return Math.min(
      Math.max(Math.min(1, burst), burst * share),
      this.#free + (since * perSecond * share) / 1_000,
    )
  }

  /** Minutes that have begun since the current one, no more than are remembered. */
  #slotsPassed(now: number): number {
    return now < this.#slotEnd ? 0 : Math.min(Math.floor((now - this.#slotEnd) / slotMs) + 1, slotCount)
  }

  #advance(now: number): void {
    for (let left = this.#slotsPassed(now); left > 0; left--) {
      this.#slot = (this.#slot + 1) % slotCount
      this.#allFirsts -= this.#firsts[this.#slot]!
      this.#allFailed -= this.#failed[this.#slot]!
      this.#firsts[this.#slot] = 0
      this.#failed[this.#slot] = 0
    }
    this.#slotEnd = (Math.floor(now / slotMs) + 1) * slotMs
  }
}
