import { addCode } from '../../core/ledger/result-log.ts'

/** Tallies of failed commits in a row whose content is remembered. */
const maxGiven = 16

/**
 * Attempts of one partition that ended after their record was finished: the other URLs of a delivery that one URL had
 * accepted. Each goes into the next tally, until one that holds it is known to be committed. Where that cannot be known,
 * it is dropped: an attempt is never counted twice.
 */
export class LateAttempts {
  /** By code (see ResultCodes). */
  readonly #counts = new Map<number, number>()
  /**
   * What tallies hold that may or may not be committed, in the order in which they were made; each holds what those
   * before it did.
   */
  readonly #given = new Map<string, Map<number, number>>()

  get isEmpty(): boolean {
    return this.#counts.size === 0
  }

  add(code: number): void {
    addCode(this.#counts, code, 1)
  }

  /** Everything there is goes into this tally. Adds it to `sums`. */
  giveTo(tallyId: string, sums: Map<number, number>): void {
    for (const [code, count] of this.#counts) addCode(sums, code, count)
    if (this.#given.size >= maxGiven) this.#given.delete(this.#given.keys().next().value!)
    this.#given.set(tallyId, new Map(this.#counts))
  }

  /**
   * The chain goes on from this tally; null: it has none yet. What was made after a known tally cannot be before it on
   * the chain; before an unknown one, everything may be.
   */
  continueFrom(tallyId: string | null): void {
    if (tallyId === null || this.#given.size === 0) return
    const held = this.#given.get(tallyId) ?? [...this.#given.values()].at(-1)!
    for (const id of this.#given.keys()) {
      this.#given.delete(id)
      if (id === tallyId) break
    }
    subtract(this.#counts, held)
    for (const later of this.#given.values()) subtract(later, held)
  }

  /** Takes all of another, none of whose tallies that are not known to be committed can be committed any more. */
  takeOver(other: LateAttempts): void {
    for (const [code, count] of other.#counts) addCode(this.#counts, code, count)
    other.#counts.clear()
    other.#given.clear()
  }
}

function subtract(from: Map<number, number>, counts: ReadonlyMap<number, number>): void {
  for (const [code, count] of counts) {
    const left = (from.get(code) ?? 0) - count
    if (left > 0) from.set(code, left)
    else from.delete(code)
  }
}
