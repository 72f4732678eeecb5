/** Calls of one key that may wait at one destination, whatever they take. */
export const maxLaneCalls = 1_000
/**
 * The work that may wait there, in ms. A call beyond it would wait for its turn for as long as the first retry tier
 * takes by default, in memory and with its offset uncommitted.
 */
export const maxLaneWorkMs = 10_000
/** What one answer counts for in the mean of them. */
const weight = 1 / 16

/**
 * How many calls of one key may wait at one destination, by how long its answers take. Calls of one key go one after
 * another: at an endpoint that takes a second, one key alone could otherwise hold what all endpoints share for hours.
 */
export class LaneBound {
  #answerMs = 0
  #maxWaiting = maxLaneCalls

  get maxWaiting(): number {
    return this.#maxWaiting
  }

  /** A call was answered, in whatever way, after so many ms from its request's start. */
  answered(durationMs: number): void {
    const before = this.#answerMs
    this.#answerMs = before === 0 ? durationMs : before + (durationMs - before) * weight
    this.#maxWaiting =
      this.#answerMs * maxLaneCalls <= maxLaneWorkMs
        ? maxLaneCalls
        : Math.max(1, Math.floor(maxLaneWorkMs / this.#answerMs))
  }
}
