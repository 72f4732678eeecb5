import { shareOfFree, wakeBelow } from '../../core/pacing/limits.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'

/**
 * Bounds everything in flight together, from the moment a record is taken until it is finished or
 * published, in number and in bytes. While the budget is exhausted no record is taken, whatever its destination; so that
 * one endpoint alone cannot exhaust it, each may hold at most a share of what is free (Dynamic Queue Length
 * Thresholds, Choudhury and Hahne 1998).
 */
export class MemoryBudget {
  readonly #maxCount: number
  readonly #maxBytes: number
  readonly #wake: (partition: AssignedPartition) => void
  readonly #waiting = new Set<AssignedPartition>()
  #count = 0
  #bytes = 0

  constructor(maxCount: number, maxBytes: number, wake: (partition: AssignedPartition) => void) {
    this.#maxCount = maxCount
    this.#maxBytes = maxBytes
    this.#wake = wake
  }

  get isFull(): boolean {
    return this.#count >= this.#maxCount || this.#bytes >= this.#maxBytes
  }

  get shareCount(): number {
    return (this.#maxCount - this.#count) * shareOfFree
  }

  get shareBytes(): number {
    return (this.#maxBytes - this.#bytes) * shareOfFree
  }

  reserve(bytes: number): void {
    this.#count++
    this.#bytes += bytes
  }

  free(bytes: number): void {
    this.#count--
    this.#bytes -= bytes
    this.#wakeWaiting()
  }

  #wakeWaiting(): void {
    if (this.#waiting.size === 0) return
    if (this.#count > this.#maxCount * wakeBelow || this.#bytes > this.#maxBytes * wakeBelow) return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const partition of waiting) this.#wake(partition)
  }

  /** Bytes beside deliveries: events that wait to be written to the ledger. */
  reserveBytes(bytes: number): void {
    this.#bytes += bytes
  }

  releaseBytes(bytes: number): void {
    this.#bytes -= bytes
    this.#wakeWaiting()
  }

  get waiting(): ReadonlySet<AssignedPartition> {
    return this.#waiting
  }

  /** The partition is woken once the budget has room again. */
  wait(partition: AssignedPartition): void {
    this.#waiting.add(partition)
  }
}
