import type { WrittenCall } from './write-call.ts'

/**
 * Calls between being taken and being settled: those that wait, and those on their way, which hold their room
 * until they are delivered or given up. First in, first out.
 */
export class CallQueue {
  readonly #maxCalls: number
  readonly #maxBytes: number
  #waiting: WrittenCall[] = []
  /** Before this index everything has been taken out. */
  #head = 0
  #waitingBytes = 0
  #heldCalls = 0
  #heldBytes = 0

  constructor(limits: { calls: number; bytes: number }) {
    this.#maxCalls = limits.calls
    this.#maxBytes = limits.bytes
  }

  /** Calls that are not on their way yet. */
  get waiting(): number {
    return this.#waiting.length - this.#head
  }

  /** Bytes of their JSON. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  get isFull(): boolean {
    return this.#heldCalls >= this.#maxCalls || this.#heldBytes >= this.#maxBytes
  }

  /** For how many calls of this size there is room. */
  roomFor(bytes: number): number {
    return Math.min(this.#maxCalls - this.#heldCalls, Math.floor((this.#maxBytes - this.#heldBytes) / bytes))
  }

  /** False, and nothing changed, when there is no room. */
  offer(call: WrittenCall): boolean {
    if (this.#heldCalls >= this.#maxCalls || this.#heldBytes + call.bytes > this.#maxBytes) return false
    this.#waiting.push(call)
    this.#waitingBytes += call.bytes
    this.#heldCalls++
    this.#heldBytes += call.bytes
    return true
  }

  /** The oldest, as many as fit into a body, each with the byte that parts it from the next. */
  take(maxCalls: number, maxBytes: number): WrittenCall[] {
    const batch: WrittenCall[] = []
    let bytes = -1
    for (let at = this.#head; at < this.#waiting.length && batch.length < maxCalls; at++) {
      const call = this.#waiting[at]!
      bytes += call.bytes + 1
      if (bytes > maxBytes) break
      batch.push(call)
      this.#waitingBytes -= call.bytes
    }
    this.#head += batch.length
    // Moved rarely, so that taking from the front costs the same however much waits.
    if (this.#head * 2 >= this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#head)
      this.#head = 0
    }
    return batch
  }

  /** These were on their way and hold no room any more. */
  settle(batch: readonly WrittenCall[]): void {
    this.#heldCalls -= batch.length
    for (const { bytes } of batch) this.#heldBytes -= bytes
  }
}

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
