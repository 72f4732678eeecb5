/**
 * Admits callers that wait for room, in FIFO order, and no more in one turn of the event loop than there
 * is room for: each makes its call, if any, within that turn. Places that were not used go to others in the next.
 */
export class Turnstile {
  readonly #places: () => number
  #waiting: (() => void)[] = []
  #letInThisTurn = 0

  constructor(places: () => number) {
    this.#places = places
  }

  get someWait(): boolean {
    return this.#waiting.length > 0
  }

  wait(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      this.letIn()
    })
  }

  /** To be called when places have become free. */
  letIn(): void {
    if (this.#waiting.length === 0) return
    const places = Math.max(0, this.#places() - this.#letInThisTurn)
    const letIn = this.#waiting.splice(0, places)
    if (letIn.length === 0) return
    if (this.#letInThisTurn === 0) {
      setImmediate(() => {
        this.#letInThisTurn = 0
        this.letIn()
      })
    }
    this.#letInThisTurn += letIn.length
    for (const resolve of letIn) resolve()
  }

  /** Room or not. */
  letAllIn(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}
