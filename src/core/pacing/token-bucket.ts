/** What is lost to rounding must not make it wait once more. */
const nearly = 1e-6

/**
 * A token bucket that may be overdrawn: it gives whatever is asked for while it holds a token, and then nothing until
 * the rate has made up for it. So what is asked for at once may be more than it holds, and still gets its turn; over
 * time no more than the rate is given, beyond one full bucket and the last thing that it gave. Times are in ms of a
 * clock that never goes back.
 */
export class TokenBucket {
  readonly #perMs: number
  readonly #size: number
  #tokens: number
  #at: number

  /** It is full, and holds what the rate allows within its own time: 600 of `600/m`. */
  constructor({ count, perMs }: Rate, now: number) {
    this.#perMs = count / perMs
    this.#size = count
    this.#tokens = count
    this.#at = now
  }

  /** In how many whole ms something can be taken; 0: now. */
  waitMs(now: number): number {
    if (now > this.#at) {
      this.#tokens = Math.min(this.#size, this.#tokens + (now - this.#at) * this.#perMs)
      this.#at = now
    }
    return this.#tokens >= 1 - nearly ? 0 : Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs - nearly))
  }

  /** Takes `count` and returns 0; or takes nothing, and returns in how many whole ms something can. */
  take(now: number, count: number): number {
    const waitMs = this.waitMs(now)
    if (waitMs === 0) this.#tokens -= count
    return waitMs
  }

  /** What was taken is not needed after all; more than full it does not get. */
  giveBack(count: number): void {
    this.#tokens = Math.min(this.#size, this.#tokens + count)
  }
}

/** How many may happen within a time: `200/s` is 200 in 1,000 ms, `600/m` is 600 in a minute. */
export interface Rate {
  count: number
  perMs: number
}

const perMs: Record<string, number> = { s: 1_000, m: 60_000 }

/** Of calls that a collector takes, and of attempts at a destination; in a second or a minute. */
export const maxQuotaCount = 100_000_000
export const maxAttemptCount = 100_000

/** Parses `200/s` and `600/m`; null when the text is not of that form, or its count not from 1 to `max`. */
export function parseRate(text: string, max: number): Rate | null {
  const match = /^([1-9]\d{0,8})\/([sm])$/.exec(text)
  if (!match) return null
  const count = Number(match[1])
  return count > max ? null : { count, perMs: perMs[match[2]!]! }
}

/** As settings have it: a number alone is one a second. */
export const rateOf = (text: string): string => (/^\d+$/.test(text) ? `${text}/s` : text)
