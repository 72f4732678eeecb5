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
