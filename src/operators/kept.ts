/** What was made in less than that is made again each time, in ms. */
const quickMs = 100
/** Kept as long as the making took, times this; and no longer, in ms. */
const [keptTimes, longestMs] = [20, 30_000]

interface Made<T> {
  of: object
  from: number
  until: number
  value: T
}

/**
 * What is made by a look at everything, kept for a while where that takes long: with 100,000 destinations a look takes a
 * second, and pages that ask every few seconds would take the whole processor.
 */
export class Kept<T> {
  readonly #made = new WeakMap<object, Map<string, Made<T>>>()
  readonly #clock: () => number

  /** @param clock ms by any clock that never goes back: how long a look takes */
  constructor(clock: () => number = () => performance.now()) {
    this.#clock = clock
  }

  /**
   * @param by whoever has it; of another one it is made again
   * @param of what it is made from, in one state
   * @param about what is asked of it
   * @param now epoch ms
   */
  get({ by, of, about, now }: { by: object; of: object; about: string; now: number }, make: () => T): T {
    let all = this.#made.get(by)
    if (!all) this.#made.set(by, (all = new Map()))
    const found = all.get(about)
    if (found?.of === of && now >= found.from && now < found.until) return found.value
    const begin = this.#clock()
    const value = make()
    const took = this.#clock() - begin
    if (took < quickMs) all.delete(about)
    else all.set(about, { of, from: now, until: now + Math.min(took * keptTimes, longestMs), value })
    return value
  }
}

export interface LookTimes {
  /** For how long what was found is good enough, from the end of its look on, in ms. */
  freshMs: number
  /** Nobody waits longer for a look, from its begin on, in ms. */
  maxWaitMs: number
}

/**
 * What a look at Kafka finds, kept for a while: one look at a time, whoever asks. A look may take half a minute, where a
 * coordinator or a leader moves, and no page waits that long.
 */
export class KeptLook<T> {
  readonly #look: () => Promise<T>
  readonly #times: LookTimes
  readonly #now: () => number
  /** The look in progress, as those who ask wait for it. */
  #looking: Promise<T | null> | null = null
  #newest: { at: number; found: T } | null = null

  /** @param look where it rejects, nothing was found @param now epoch ms */
  constructor(look: () => Promise<T>, times: LookTimes, now: () => number) {
    this.#look = look
    this.#times = times
    this.#now = now
  }

  /** What was found last, however long ago; null before. */
  get newest(): T | null {
    return this.#newest && this.#newest.found
  }

  /** Null where nothing was found, or not soon enough. Never rejects. */
  async get(): Promise<T | null> {
    const age = this.#newest === null ? Infinity : this.#now() - this.#newest.at
    // Below 0 the clock was set back.
    if (age >= 0 && age <= this.#times.freshMs) return this.newest
    return (this.#looking ??= this.#lookOnce())
  }

  /** Resolves at the end of the look, or to null once that has taken too long. */
  #lookOnce(): Promise<T | null> {
    const { promise, resolve } = Promise.withResolvers<T | null>()
    const timer = setTimeout(resolve, this.#times.maxWaitMs, null)
    const ended = (found: T | null) => {
      clearTimeout(timer)
      this.#looking = null
      resolve(found)
    }
    this.#look().then(
      (found) => {
        this.#newest = { at: this.#now(), found }
        ended(found)
      },
      () => ended(null),
    )
    return promise
  }
}
