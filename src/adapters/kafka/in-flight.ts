/**
 * The part of a Map that kafkajs's request queue uses, for the few requests that a connection has under way. Not a Map,
 * for the reason that HashChains gives: each request would keep alive the ones after it, and with them their answers.
 */
export class InFlight<T> {
  readonly #ids: number[] = []
  readonly #requests: T[] = []

  get size(): number {
    return this.#ids.length
  }

  has(id: number): boolean {
    return this.#ids.includes(id)
  }

  get(id: number): T | undefined {
    return this.#requests[this.#ids.indexOf(id)]
  }

  set(id: number, request: T): this {
    this.delete(id)
    this.#ids.push(id)
    this.#requests.push(request)
    return this
  }

  delete(id: number): boolean {
    const index = this.#ids.indexOf(id)
    if (index < 0) return false
    this.#ids.splice(index, 1)
    this.#requests.splice(index, 1)
    return true
  }

  clear(): void {
    this.#ids.length = 0
    this.#requests.length = 0
  }

  /** As they are now: those that were sent first come first. */
  values(): IterableIterator<T> {
    return [...this.#requests].values()
  }

  forEach(each: (request: T, id: number) => void): void {
    const ids = [...this.#ids]
    for (const [index, request] of [...this.#requests].entries()) each(request, ids[index]!)
  }
}
