/** What an IntrusiveQueue holds. A node is in one queue at a time; it carries the link, so nothing is allocated. */
export interface QueueNode<T> {
  isQueued: boolean
  next: T | null
}

/**
 * First in, first out, each node once. Not a Set: when thousands come and go with each request, V8 rebuilds the
 * Set's table again and again (see HashChains).
 */
export class IntrusiveQueue<T extends QueueNode<T>> {
  #first: T | null = null
  #last: T | null = null
  #length = 0

  get first(): T | null {
    return this.#first
  }

  get length(): number {
    return this.#length
  }

  /** A node that is queued already keeps its place. */
  push(one: T): void {
    if (one.isQueued) return
    one.isQueued = true
    if (this.#last) this.#last.next = one
    else this.#first = one
    this.#last = one
    this.#length++
  }

  /** Removes and returns the first node; null when there is none. */
  shift(): T | null {
    const one = this.#first
    if (!one) return null
    this.#first = one.next
    if (!this.#first) this.#last = null
    one.isQueued = false
    one.next = null
    this.#length--
    return one
  }
}
