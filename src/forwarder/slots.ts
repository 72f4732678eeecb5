/** Who takes slots. */
export interface SlotUser {
  /** Slots that it holds. */
  readonly inFlight: number
  /** There may be a slot for it: it takes what it can use. */
  pump(now: number): void
}

/** Users that are over their share and looked at when one slot is given back. */
const looks = 2

/**
 * The process's slots for requests on the wire, shared so that nobody can take them all: each user may take another
 * one only while it holds fewer than are free (Dynamic Queue Length Thresholds, Choudhury and Hahne 1998, with a factor
 * of one). One user alone gets half of them, n that want all they can get an n+1st each, with as many left for whoever
 * comes next. Who finds none at all waits for its turn, for one slot each.
 */
export class Slots {
  readonly #max: number
  #taken = 0
  /** Found no slot: first come, first served. */
  readonly #hungry = new Set<SlotUser>()
  /** The hungry one whose turn it is. */
  #fed: SlotUser | null = null
  /** Found some left, but not for who has that many already. */
  readonly #overShare = new Set<SlotUser>()

  constructor(max: number) {
    this.#max = max
  }

  get taken(): number {
    return this.#taken
  }

  /** False: it will be pumped once there may be one. */
  take(user: SlotUser): boolean {
    const free = this.#max - this.#taken
    // Whoever is hungry was here before: without turns, a user with a long queue would keep every slot.
    if (free <= 0 || (this.#hungry.size > 0 && this.#fed !== user)) {
      this.#hungry.add(user)
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
  }

  /** To be called after slots were given back and their user has taken again what it can use. */
  feed(now: number): void {
    while (this.#hungry.size > 0 && this.#taken < this.#max) this.#turn(this.#hungry, now)
    for (let left = looks; left > 0 && this.#overShare.size > 0 && this.#taken < this.#max; left--)
      this.#turn(this.#overShare, now)
  }

  #turn(users: Set<SlotUser>, now: number): void {
    const [user] = users as Iterable<SlotUser> as [SlotUser]
    users.delete(user)
    this.#fed = user
    user.pump(now)
    this.#fed = null
  }
}
