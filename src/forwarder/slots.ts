import { BusyWindow } from '../core/busy-window.ts'
import { Line, type Standing } from './line.ts'
import { steadyClock } from './steady-clock.ts'

/** Who takes slots. */
export interface SlotUser extends Standing<SlotUser> {
  /** Slots that it holds. */
  readonly inFlight: number
  /** Requests that wait here. */
  readonly queued: number
  /** There may be a slot for it: it takes what it can use. */
  pump(now: number): void
}

/** See BusyWindow. */
export interface Window {
  readonly size: number
  answered(): void
  turned(inFlight: number): boolean
}

/** Users that are over their share and looked at when one slot is given back. */
const looks = 2

/**
 * The process's slots for requests on the wire, shared so that nobody can take them all: each user may take another
 * one only while it holds fewer than are free (Dynamic Queue Length Thresholds, Choudhury and Hahne 1998, with a factor
 * of one). One user alone gets half of them, n that want all they can get an n+1st each, with as many left for whoever
 * comes next. Who finds none at all waits for its turn, for one slot each.
 *
 * While the process is busy with answers, no more of them are given than keep it so (see BusyWindow), by turns too.
 */
export class Slots {
  readonly #max: number
  readonly #window: Window
  #taken = 0
  /** Found no slot. */
  readonly #hungry = new Line<SlotUser>()
  /** The hungry one whose turn it is. */
  #fed: SlotUser | null = null
  /** Found some left, but not for who has that many already. */
  readonly #overShare = new Set<SlotUser>()
  #watching = false

  constructor(max: number, window: Window = new BusyWindow(max)) {
    this.#max = max
    this.#window = window
  }

  get taken(): number {
    return this.#taken
  }

  /** So many requests wait for nothing but a slot, though not all are taken: the process is busy with others. */
  hasWaiting(count: number): boolean {
    if (this.#taken >= this.#max) return false
    // Each has one at least; or has none any more, and is passed over at the next slot.
    if (this.#hungry.length >= count) return true
    let waiting = 0
    for (let user = this.#hungry.first; user; user = user.behind)
      if ((waiting += user.queued) >= count) return true
    return false
  }

  /** False: it will be pumped once there may be one. */
  take(user: SlotUser): boolean {
    const free = this.#max - this.#taken
    // Whoever is hungry was here before: without turns, a user with a long queue would keep every slot.
    if (!this.#hasFree || (this.#hungry.length > 0 && this.#fed !== user)) {
      this.#hungry.join(user)
      this.#watch()
      return false
    }
    if (user.inFlight >= free) {
      this.#overShare.add(user)
      return false
    }
    this.#fed = null
    this.#taken++
    return true
  }

  release(): void {
    this.#taken--
    this.#window.answered()
    if (this.#hungry.length > 0) this.#watch()
  }

  /** To be called after slots were given back and their user has taken again what it can use. */
  feed(now: number): void {
    while (this.#hungry.length > 0 && this.#hasFree) this.#turn(this.#hungry.shift()!, now)
    for (let left = looks; left > 0 && this.#overShare.size > 0 && this.#hasFree; left--) {
      const [user] = this.#overShare as Iterable<SlotUser> as [SlotUser]
      this.#overShare.delete(user)
      this.#turn(user, now)
    }
  }

  get #hasFree(): boolean {
    return this.#taken < this.#max && this.#taken < this.#window.size
  }

  #turn(user: SlotUser, now: number): void {
    this.#fed = user
    user.pump(now)
    this.#fed = null
  }

  /**
   * Looks once a turn, after the sockets were read, as long as somebody waits for a slot that there is: only the window
   * can be in the way then.
   */
  #watch(): void {
    if (this.#watching || this.#taken >= this.#max) return
    this.#watching = true
    setImmediate(this.#look)
  }

  readonly #look = () => {
    this.#watching = false
    if (this.#hungry.length > 0 && this.#window.turned(this.#taken)) this.feed(steadyClock.now())
    if (this.#hungry.length > 0) this.#watch()
  }
}
