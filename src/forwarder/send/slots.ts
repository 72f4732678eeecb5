import { BusyWindow } from '../../core/pacing/busy-window.ts'
import { fewWaiting, plentyWaiting } from '../../core/pacing/limits.ts'
import { IntrusiveQueue, type QueueNode } from '../../core/intrusive-queue.ts'
import { steadyClock } from '../steady-clock.ts'

/** What takes slots: an endpoint's queue. */
export interface SlotUser extends QueueNode<SlotUser> {
  /** Slots held. */
  readonly inFlight: number
  /** Requests that wait here. */
  readonly queued: number
  /** Called when there may be a free slot: takes what it can use. */
  pump(now: number): void
}

/** See BusyWindow. */
export interface Window {
  readonly size: number
  answered(): void
  turned(inFlight: number): boolean
}

/** Users over their share that are tried when a slot is released. */
const overShareScans = 2
/**
 * The process's slots for requests on the wire, shared so that no user can take them all: each may take another
 * one only while it holds fewer than are free (Dynamic Queue Length Thresholds, Choudhury and Hahne 1998, with a factor
 * of one). One user alone gets half of them, n that want all they can get an (n+1)th each, with as many left for
 * the next one. A user that finds no free slot is queued and granted one slot, in FIFO order.
 *
 * While the process is busy with answers, only as many slots are granted as keep it so (see BusyWindow), in turns too.
 */
export class Slots {
  readonly #max: number
  readonly #window: Window
  #taken = 0
  /** Users that found no free slot. */
  readonly #waiting = new IntrusiveQueue<SlotUser>()
  /** The waiting user whose turn it is. */
  #granted: SlotUser | null = null
  /** Users that found free slots, but held as many already. */
  readonly #overShare = new Set<SlotUser>()
  #watching = false
  #hasPlenty = false

  constructor(max: number, window: Window = new BusyWindow(max)) {
    this.#max = max
    this.#window = window
  }

  get taken(): number {
    return this.#taken
  }

  /**
   * To be called in each turn of the event loop in which records are to be taken: whether the process is busy and has
   * enough requests waiting. Records taken beyond that only age: in V8's old space, and out of the processor's caches.
   * Requests that wait for their receiver do not count: others may be behind them.
   */
  countWaiting(): boolean {
    this.#hasPlenty = this.hasWaiting(this.#hasPlenty ? fewWaiting : plentyWaiting)
    return this.#hasPlenty
  }

  /** Whether `count` requests wait only for a slot though not all are taken: the process is busy with answers. */
  hasWaiting(count: number): boolean {
    if (this.#taken >= this.#max) return false
    // Each has at least one request queued, or has none any more and is skipped at the next slot.
    if (this.#waiting.length >= count) return true
    let waiting = 0
    for (let user = this.#waiting.first; user; user = user.next)
      if ((waiting += user.queued) >= count) return true
    return false
  }

  /** Whether `take` would give one, without queuing for it. */
  isFreeFor(user: SlotUser): boolean {
    return this.#hasFree && this.#waiting.length === 0 && user.inFlight < this.#max - this.#taken
  }

  /** Takes a slot; false when there is none, and the user is pumped once there may be one. */
  take(user: SlotUser): boolean {
    const free = this.#max - this.#taken
    // Waiting users come first: without turns, a user with a long queue would keep every slot.
    if (!this.#hasFree || (this.#waiting.length > 0 && this.#granted !== user)) {
      this.#waiting.push(user)
      this.#watch()
      return false
    }
    if (user.inFlight >= free) {
      this.#overShare.add(user)
      return false
    }
    this.#granted = null
    this.#taken++
    return true
  }

  release(): void {
    this.#taken--
    this.#window.answered()
    if (this.#waiting.length > 0) this.#watch()
  }

  /** To be called after slots were released and their user has taken again what it can use. */
  grantWaiting(now: number): void {
    while (this.#waiting.length > 0 && this.#hasFree) this.#grant(this.#waiting.shift()!, now)
    for (let left = overShareScans; left > 0 && this.#overShare.size > 0 && this.#hasFree; left--) {
      const [user] = this.#overShare as Iterable<SlotUser> as [SlotUser]
      this.#overShare.delete(user)
      this.#grant(user, now)
    }
  }

  get #hasFree(): boolean {
    return this.#taken < this.#max && this.#taken < this.#window.size
  }

  #grant(user: SlotUser, now: number): void {
    this.#granted = user
    user.pump(now)
    this.#granted = null
  }

  /**
   * Checks once a turn, after the sockets were read, while users wait although slots are free: only the window
   * can hold them back then.
   */
  #watch(): void {
    if (this.#watching || this.#taken >= this.#max) return
    this.#watching = true
    setImmediate(this.#scan)
  }

  readonly #scan = () => {
    this.#watching = false
    if (this.#waiting.length > 0 && this.#window.turned(this.#taken)) this.grantWaiting(steadyClock.now())
    if (this.#waiting.length > 0) this.#watch()
  }
}
