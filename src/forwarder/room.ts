import type { PartitionWork } from './partition-work.ts'

/** What one endpoint may hold of the room at present. */
export interface RoomShare {
  readonly shareCount: number
  readonly shareBytes: number
}

/** What an endpoint may hold of what is free: one alone gets a third of the room, ten a twelfth each. */
const shareOfFree = 0.5

/**
 * What everything under way may hold together, from the moment a record is taken until it is finished or handed
 * over, in number and in bytes. While there is no room no record is taken, whatever its destination; so that it does
 * not come to that for the sake of one endpoint, each may hold at most a share of what is free (Dynamic Queue Length
 * Thresholds, Choudhury and Hahne 1998).
 */
export class Room implements RoomShare {
  readonly #maxCount: number
  readonly #maxBytes: number
  readonly #wake: (partition: PartitionWork) => void
  readonly #waiting = new Set<PartitionWork>()
  #count = 0
  #bytes = 0

  constructor(maxCount: number, maxBytes: number, wake: (partition: PartitionWork) => void) {
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

  take(bytes: number): void {
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
    if (this.#count > this.#maxCount * 0.75 || this.#bytes > this.#maxBytes * 0.75) return
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const partition of waiting) this.#wake(partition)
  }

  /** Bytes that are no delivery's: what the ledger is about to tell. */
  hold(bytes: number): void {
    this.#bytes += bytes
  }

  release(bytes: number): void {
    this.#bytes -= bytes
    this.#wakeWaiting()
  }

  get waiting(): ReadonlySet<PartitionWork> {
    return this.#waiting
  }

  /** The partition is woken once there is room again. */
  wait(partition: PartitionWork): void {
    this.#waiting.add(partition)
  }
}
