import { deferredAtOnce } from '../../core/pacing/limits.ts'

/** A source of deliveries that wait although nothing takes them. */
export interface Deferring {
  /**
   * Defers up to `max` deliveries that have cause to be deferred at this moment, and returns their number: fewer than
   * `max` if there are no more. Must not throw.
   */
  defer(max: number): number
}

/** Defers waiting deliveries of the whole process, a limited number in each turn of the event loop. */
export class Deferrals {
  readonly #sources = new Set<Deferring>()
  #left = deferredAtOnce
  #working = false
  #scheduled = false

  /** Defers what the source has, now and in the turns to come, until it has no more. */
  begin(source: Deferring): void {
    this.#sources.add(source)
    this.#work()
  }

  /** Consumes one unit of this turn's quota; false when it is exhausted. */
  takeOne(): boolean {
    if (this.#left === 0) return false
    this.#left--
    this.#nextTurn()
    return true
  }

  #work(): void {
    // Deferring one may give another source cause to begin.
    if (this.#working) return
    this.#working = true
    for (const source of this.#sources) {
      if (this.#left === 0) break
      const max = this.#left
      const deferred = source.defer(max)
      this.#left -= deferred
      // A source with more goes behind the others.
      this.#sources.delete(source)
      if (deferred === max) this.#sources.add(source)
    }
    this.#working = false
    if (this.#sources.size > 0 || this.#left < deferredAtOnce) this.#nextTurn()
  }

  #nextTurn(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(() => {
      this.#scheduled = false
      this.#left = deferredAtOnce
      if (this.#sources.size > 0) this.#work()
    })
  }
}
