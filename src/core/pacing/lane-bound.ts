import { maxLaneWorkMs } from './limits.ts'

/** The mean covers about this many of the last answers. */
const answers = 16

/**
 * How many calls of one key may wait at one destination, by how long its answers take. Calls of one key go one after
 * another: at an endpoint that takes a second, one key alone could otherwise hold what all endpoints share for hours.
 */
export class LaneBound {
  #seen = 0
  #answerMs = 0
  #maxWaiting = Infinity

  get maxWaiting(): number {
    return this.#maxWaiting
  }

  /** A call was answered, with any outcome, that many ms after its request's start. */
  answered(durationMs: number): void {
    if (this.#seen < answers) this.#seen++
    this.#answerMs += (durationMs - this.#answerMs) / this.#seen
    // A slow answer among quick ones says little, and so does what came before a quick one.
    const turnMs = Math.min(this.#answerMs, durationMs)
    this.#maxWaiting = Math.max(1, Math.floor(maxLaneWorkMs / turnMs))
  }
}
