/** Who may stand in a Line, one at a time. The link lives in who stands there: nothing is allocated for it. */
export interface Standing<T> {
  isInLine: boolean
  behind: T | null
}

/**
 * First come, first served, everybody once. Not a Set: where thousands come and go with each request, V8 makes one of
 * its tables after the other (see HashChains).
 */
export class Line<T extends Standing<T>> {
  #first: T | null = null
  #last: T | null = null
  #length = 0

  get first(): T | null {
    return this.#first
  }

  get length(): number {
    return this.#length
  }

  /** Who stands there keeps its place. */
  join(one: T): void {
    if (one.isInLine) return
    one.isInLine = true
    if (this.#last) this.#last.behind = one
    else this.#first = one
    this.#last = one
    this.#length++
  }

  /** Takes out the first; null when there is nobody. */
  shift(): T | null {
    const one = this.#first
    if (!one) return null
    this.#first = one.behind
    if (!this.#first) this.#last = null
    one.isInLine = false
    one.behind = null
    this.#length--
    return one
  }
}
