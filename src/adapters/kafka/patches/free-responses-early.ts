import { silentLogger, type Patch } from './patch.ts'

const file = 'src/network/requestQueue'

/**
 * kafkajs keeps the requests in flight of a connection in a Map, which keeps responses of up to 3 MB each alive until
 * the whole heap is collected (docs/performance.md). None known upstream.
 *
 * Now the few requests in flight stand in an array.
 */
export const freeResponsesEarly: Patch = {
  name: 'free-responses-early',
  targets: [{ file, members: {}, fields: { args: [{ logger: silentLogger }], kinds: { inflight: 'map' } } }],
  install(load) {
    const { prototype } = load(file) as { prototype: object }
    const requests = Symbol('requests in flight')
    Object.defineProperty(prototype, 'inflight', {
      get(this: { [requests]: unknown }) {
        return this[requests]
      },
      // The constructor assigns a Map.
      set(this: { [requests]: unknown }) {
        this[requests] = new RequestsInFlight()
      },
    })
  },
}

/** The part of a Map that kafkajs's request queue uses. */
export class RequestsInFlight<T> {
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

  /** A copy, in the order in which they were sent. */
  values(): IterableIterator<T> {
    return [...this.#requests].values()
  }

  forEach(each: (request: T, id: number) => void): void {
    const ids = [...this.#ids]
    for (const [index, request] of [...this.#requests].entries()) each(request, ids[index]!)
  }
}
