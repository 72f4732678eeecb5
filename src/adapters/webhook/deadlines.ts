/** An entry of Deadlines. The links live in the entry itself: nothing is allocated per request. */
export interface Expiring {
  earlier: Expiring | null
  later: Expiring | null
  /** Monotonic, in ms. */
  expiresAt: number
  /** Called at most once, only after `expiresAt`; the entry has been removed by then. */
  expire(): void
}

/**
 * Deadlines that all lie equally far ahead: the order of adding is the order of expiry, so a linked list and one
 * timer serve any number of requests. The timer is set to the oldest entry's deadline and, when that entry has
 * been removed meanwhile, moves on: under load it fires about once a timeout rather than once a request.
 */
export class Deadlines {
  #head: Expiring | null = null
  #tail: Expiring | null = null
  #timer: NodeJS.Timeout | null = null

  /** `entry.expiresAt` must not lie before that of any entry added earlier. */
  add(entry: Expiring): void {
    entry.earlier = this.#tail
    entry.later = null
    if (this.#tail === null) this.#head = entry
    else this.#tail.later = entry
    this.#tail = entry
    if (this.#timer === null) this.#arm(entry.expiresAt - performance.now())
  }

  /** The entry must be in the list. */
  remove(entry: Expiring): void {
    if (entry.earlier === null) this.#head = entry.later
    else entry.earlier.later = entry.later
    if (entry.later === null) this.#tail = entry.earlier
    else entry.later.earlier = entry.earlier
    entry.earlier = null
    entry.later = null
  }

  /** The timer does not keep the process alive: what it watches over (a socket, a look-up) does. */
  #arm(ms: number): void {
    this.#timer = setTimeout(this.#onTimer, Math.max(1, Math.ceil(ms))).unref()
  }

  /** Not before the sockets were read: if this process was frozen, or late, the answers may lie there. */
  readonly #onTimer = () => {
    setImmediate(this.#expire)
  }

  readonly #expire = () => {
    const now = performance.now()
    try {
      while (this.#head !== null && this.#head.expiresAt <= now) {
        const entry = this.#head
        this.remove(entry)
        entry.expire()
      }
    } finally {
      // Not before: `expire` may add entries, and those that are left expire earlier.
      this.#timer = null
      if (this.#head !== null) this.#arm(this.#head.expiresAt - performance.now())
    }
  }
}
