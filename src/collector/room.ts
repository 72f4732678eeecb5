/** What the collector holds at once, so that it refuses work before memory grows. */
export interface RoomLimits {
  /** Calls that wait for Kafka. */
  calls: number
  /** Bytes of bodies that are coming in or whose answer is being made; each takes about three times as much. */
  bytes: number
}

/** Of the room for bytes, to all whose source is not known yet: 1/8. */
const strangersPart = 8

/** What one source holds, or all requests together whose source is not known. */
interface Share {
  calls: number
  bytes: number
  /** Of bytes, however much is free. */
  readonly maxBytes: number
}

/**
 * The room of one process, shared by all sources. A source gets more as long as it then holds no more than is still
 * free: alone it can have half of the room, beside n others that want all they can get an (n + 2)th, and there is
 * always some left for one that has nothing yet (the dynamic thresholds of switches, Choudhury and Hahne 1998).
 */
export class Room {
  readonly #limits: RoomLimits
  readonly #strangers: Share
  /** There are as many as there ever were sources while this process ran. */
  readonly #shares = new Map<string, Share>()
  #calls = 0
  #bytes = 0

  constructor(limits: RoomLimits) {
    this.#limits = limits
    this.#strangers = { calls: 0, bytes: 0, maxBytes: Math.floor(limits.bytes / strangersPart) }
  }

  get calls(): number {
    return this.#calls
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Of a source; null stands for all requests whose source is not known. */
  shareOf(sourceId: string | null): Share {
    if (sourceId === null) return this.#strangers
    let share = this.#shares.get(sourceId)
    if (share === undefined) {
      share = { calls: 0, bytes: 0, maxBytes: Infinity }
      this.#shares.set(sourceId, share)
    }
    return share
  }

  hasCalls(share: Share, count: number): boolean {
    return share.calls + count <= this.#limits.calls - this.#calls - count
  }

  hasBytes(share: Share, count: number): boolean {
    const bytes = share.bytes + count
    return bytes <= share.maxBytes && bytes <= this.#limits.bytes - this.#bytes - count
  }

  /** Negative counts give back. Whether there is room is asked before. */
  add(share: Share, calls: number, bytes: number): void {
    share.calls += calls
    share.bytes += bytes
    this.#calls += calls
    this.#bytes += bytes
  }
}

/** What one request takes of the room, as part of its source's share. */
export class Hold {
  readonly #room: Room
  #share: Share
  #calls = 0
  #bytes = 0

  constructor(room: Room, sourceId: string | null) {
    this.#room = room
    this.#share = room.shareOf(sourceId)
  }

  /** Counts what it holds as this source's from now on; false, and nothing has changed, when that has no room for it. */
  moveTo(sourceId: string): boolean {
    const room = this.#room
    const share = room.shareOf(sourceId)
    if (share === this.#share) return true
    const [from, calls, bytes] = [this.#share, this.#calls, this.#bytes]
    room.add(from, -calls, -bytes)
    const hasRoom = room.hasCalls(share, calls) && room.hasBytes(share, bytes)
    if (hasRoom) this.#share = share
    room.add(this.#share, calls, bytes)
    return hasRoom
  }

  /** Whether so many calls would find room. Nothing is taken. */
  hasCalls(count: number): boolean {
    return this.#room.hasCalls(this.#share, count)
  }

  /** Of calls that were found to have room. */
  addCalls(count: number): void {
    this.#calls += count
    this.#room.add(this.#share, count, 0)
  }

  /** Whether there is room for so many bytes now. Nothing is taken. */
  hasBytes(count: number): boolean {
    return this.#room.hasBytes(this.#share, count)
  }

  takeBytes(count: number): boolean {
    if (!this.hasBytes(count)) return false
    this.#bytes += count
    this.#room.add(this.#share, 0, count)
    return true
  }

  /** Idempotent. */
  release(): void {
    this.#room.add(this.#share, -this.#calls, -this.#bytes)
    this.#calls = this.#bytes = 0
  }
}
