/** How far a source may exceed its rate in a burst: what it may send in this many seconds. */
const burstSeconds = 1

interface Level {
  /** Calls that were counted and that the rate has not worked off yet, as of `at`. */
  calls: number
  /** In ms of the clock. */
  at: number
}

/**
 * Limits the calls a second of each source (a leaky bucket for each): the partitions are shared, first in, first out,
 * so a source that floods them delays the deliveries of all others. A request is admitted whole while its source is
 * below its burst; one large batch may go beyond it, and the source then waits the longer.
 */
export class SourceRates {
  /** Calls a ms. */
  readonly #rate: number
  readonly #burst: number
  readonly #now: () => number
  /** There are as many as there ever were sources while this process ran. */
  readonly #levels = new Map<string, Level>()

  /** `perSecond` is Infinity for no limit; `now` is in ms, and never goes back. */
  constructor(perSecond: number, now: () => number) {
    this.#rate = perSecond / 1_000
    this.#burst = perSecond * burstSeconds
    this.#now = now
  }

  /** In how many ms the source may send again; 0: it may now. */
  waitMs(sourceId: string): number {
    if (this.#rate === Infinity) return 0
    const over = this.#levelOf(sourceId).calls - this.#burst
    return over < 0 ? 0 : Math.max(1, over / this.#rate)
  }

  /** Counts calls of a request for which `waitMs` was 0. */
  count(sourceId: string, calls: number): void {
    if (this.#rate !== Infinity) this.#levels.get(sourceId)!.calls += calls
  }

  /** As of now. */
  #levelOf(sourceId: string): Level {
    let level = this.#levels.get(sourceId)
    const now = this.#now()
    if (level === undefined) {
      level = { calls: 0, at: now }
      this.#levels.set(sourceId, level)
    } else {
      level.calls = Math.max(0, level.calls - (now - level.at) * this.#rate)
      level.at = now
    }
    return level
  }
}
