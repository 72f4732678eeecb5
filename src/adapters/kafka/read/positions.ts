/** The next offset of each partition, and callers that wait until all of them are far enough. */
export class Positions {
  readonly #next: Map<number, number>
  readonly #waiters = new Set<{
    targets: ReadonlyMap<number, number>
    resolve: () => void
    reject: (error: unknown) => void
  }>()

  constructor(from: ReadonlyMap<number, number> = new Map()) {
    this.#next = new Map(from)
  }

  /** Undefined while nothing is known of the partition. */
  get(partition: number): number | undefined {
    return this.#next.get(partition)
  }

  advance(partition: number, offset: number): void {
    if (offset <= (this.#next.get(partition) ?? 0)) return
    this.#next.set(partition, offset)
    for (const waiter of this.#waiters)
      if (offset >= (waiter.targets.get(partition) ?? Infinity) && this.isPast(waiter.targets))
        waiter.resolve()
  }

  /** What lies from there on is gone, and other records take its place. */
  cutOff(partition: number, offset: number): void {
    this.#next.set(partition, offset)
  }

  isPast(targets: ReadonlyMap<number, number>): boolean {
    for (const [partition, target] of targets) if ((this.#next.get(partition) ?? 0) < target) return false
    return true
  }

  /** Resolves once `targets` are reached; rejects when the signal aborts, or by `rejectWaiters`. */
  async reach(
    targets: ReadonlyMap<number, number>,
    onAbort: () => Error,
    signal?: AbortSignal,
  ): Promise<void> {
    if (this.isPast(targets)) return
    if (signal?.aborted) throw onAbort()
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const waiter = { targets, resolve, reject }
    const abort = () => reject(onAbort())
    signal?.addEventListener('abort', abort, { once: true })
    this.#waiters.add(waiter)
    try {
      await promise
    } finally {
      this.#waiters.delete(waiter)
      signal?.removeEventListener('abort', abort)
    }
  }

  rejectWaiters(error: unknown): void {
    for (const waiter of this.#waiters) waiter.reject(error)
  }
}
