/** What the collector holds at once, so that it refuses work before memory grows. */
export interface RoomLimits {
  /** Calls whose answer is outstanding. */
  calls: number
  /** Bytes of bodies that are coming in or whose answer is outstanding; each takes about three times as much. */
  bytes: number
}

export class Room {
  readonly #limits: RoomLimits
  #calls = 0
  #bytes = 0

  constructor(limits: RoomLimits) {
    this.#limits = limits
  }

  get calls(): number {
    return this.#calls
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Whether the calls found room. */
  takeCalls(count: number): boolean {
    if (this.#calls + count > this.#limits.calls) return false
    this.#calls += count
    return true
  }

  takeBytes(count: number): boolean {
    if (!this.hasBytes(count)) return false
    this.#bytes += count
    return true
  }

  /** Whether there is room for so many bytes now. Nothing is taken. */
  hasBytes(count: number): boolean {
    return this.#bytes + count <= this.#limits.bytes
  }

  release(calls: number, bytes: number): void {
    this.#calls -= calls
    this.#bytes -= bytes
  }
}

/** What one request takes of the room. */
export class Hold {
  readonly #room: Room
  #calls = 0
  #bytes = 0

  constructor(room: Room) {
    this.#room = room
  }

  takeCalls(count: number): boolean {
    if (!this.#room.takeCalls(count)) return false
    this.#calls += count
    return true
  }

  takeBytes(count: number): boolean {
    if (!this.#room.takeBytes(count)) return false
    this.#bytes += count
    return true
  }

  hasBytes(count: number): boolean {
    return this.#room.hasBytes(count)
  }

  /** Idempotent. */
  release(): void {
    this.#room.release(this.#calls, this.#bytes)
    this.#calls = this.#bytes = 0
  }
}
