/** What the collector holds at once: beyond that it refuses work, so that memory stays bounded. */
export interface BudgetLimits {
  /** Calls that wait for Kafka. */
  calls: number
  /** Bytes of bodies that are coming in or whose answer is being made; each takes about three times as much. */
  bytes: number
}

/** Part of the bytes that requests of unknown sources may hold together: 1/8. */
const strangersPart = 8

/** What one source holds, or one sender of requests whose source is not known. */
interface Share {
  calls: number
  bytes: number
  /** Reservations that count towards it. */
  requests: number
  /** Of a sender: what all of them hold together. */
  readonly pool: Pool | null
}

interface Pool {
  bytes: number
  readonly maxBytes: number
  readonly shares: Map<string, Share>
}

/**
 * The request budget of one process, shared by all sources. A source gets more while it then holds no more than is still
 * free: alone it can have half of the budget, beside n others that want all they can get an (n + 2)th, and there is
 * always some left for one that has nothing yet (the dynamic thresholds of switches, Choudhury and Hahne 1998). Requests
 * whose source is not known share a pool within it by the same rule, sender by sender.
 */
export class RequestBudget {
  readonly #limits: BudgetLimits
  readonly #strangers: Pool
  /** There are as many as there ever were sources while this process ran. */
  readonly #shares = new Map<string, Share>()
  #calls = 0
  #bytes = 0
  /** Requests that hold a reservation. */
  requests = 0

  constructor(limits: BudgetLimits) {
    this.#limits = limits
    this.#strangers = { bytes: 0, maxBytes: Math.floor(limits.bytes / strangersPart), shares: new Map() }
  }

  get calls(): number {
    return this.#calls
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Of a source; null stands for one that is not known, where the share is the sender's. */
  shareOf(sourceId: string | null, sender: string): Share {
    const pool = sourceId === null ? this.#strangers : null
    const [shares, key] = sourceId === null ? [this.#strangers.shares, sender] : [this.#shares, sourceId]
    let share = shares.get(key)
    if (share === undefined) shares.set(key, (share = { calls: 0, bytes: 0, requests: 0, pool }))
    return share
  }

  /** There are many senders: those without a request are forgotten. */
  forget(share: Share, sender: string): void {
    if (share.requests === 0) share.pool?.shares.delete(sender)
  }

  hasCalls(share: Share, count: number): boolean {
    return share.calls + count <= this.#limits.calls - this.#calls - count
  }

  hasBytes(share: Share, count: number): boolean {
    const { pool } = share
    if (pool !== null && share.bytes + count > pool.maxBytes - pool.bytes - count) return false
    return (pool ?? share).bytes + count <= this.#limits.bytes - this.#bytes - count
  }

  /** Negative counts give back. Callers check for room before. */
  add(share: Share, calls: number, bytes: number): void {
    share.calls += calls
    share.bytes += bytes
    if (share.pool !== null) share.pool.bytes += bytes
    this.#calls += calls
    this.#bytes += bytes
  }
}

/** What one request takes of the budget, as part of its source's share. */
export class Reservation {
  /** Whose request it is. */
  readonly sender: string
  readonly #budget: RequestBudget
  #share: Share
  #calls = 0
  #bytes = 0
  #isReleased = false

  constructor(budget: RequestBudget, sourceId: string | null, sender: string) {
    this.#budget = budget
    this.sender = sender
    this.#share = budget.shareOf(sourceId, sender)
    this.#share.requests++
    budget.requests++
  }

  /** Moves what it holds to this source's share; false, and nothing has changed, when that share has no room. */
  moveTo(sourceId: string): boolean {
    const budget = this.#budget
    const share = budget.shareOf(sourceId, this.sender)
    if (share === this.#share) return true
    const [from, calls, bytes] = [this.#share, this.#calls, this.#bytes]
    budget.add(from, -calls, -bytes)
    const hasRoom = budget.hasCalls(share, calls) && budget.hasBytes(share, bytes)
    budget.add(hasRoom ? share : from, calls, bytes)
    if (hasRoom) this.#leaveFor(share)
    return hasRoom
  }

  /** Whether `count` more calls have room. Changes nothing. */
  hasCalls(count: number): boolean {
    return this.#budget.hasCalls(this.#share, count)
  }

  /** Adds calls for which `hasCalls` was true. */
  addCalls(count: number): void {
    this.#calls += count
    this.#budget.add(this.#share, count, 0)
  }

  /** Whether there is room for `count` bytes now. Changes nothing. */
  hasBytes(count: number): boolean {
    return this.#budget.hasBytes(this.#share, count)
  }

  takeBytes(count: number): boolean {
    if (!this.hasBytes(count)) return false
    this.#bytes += count
    this.#budget.add(this.#share, 0, count)
    return true
  }

  /** Idempotent. */
  release(): void {
    this.#budget.add(this.#share, -this.#calls, -this.#bytes)
    this.#calls = this.#bytes = 0
    if (this.#isReleased) return
    this.#isReleased = true
    this.#budget.requests--
    this.#leaveFor(null)
  }

  #leaveFor(share: Share | null): void {
    this.#share.requests--
    this.#budget.forget(this.#share, this.sender)
    if (share === null) return
    share.requests++
    this.#share = share
  }
}
