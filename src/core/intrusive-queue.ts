/** What an IntrusiveQueue holds. A node is in one queue at a time; it carries the link, so nothing is allocated. */
export interface QueueNode<T> {
  isQueued: boolean
  next: T | null
}

/**
 * First in, first out, each node once. Not an array, because shifting a long one copies it, nor a Set: when thousands
 * come and go with each request, V8 rebuilds the Set's table again and again (see HashChains).
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

  /** Puts a node before all others; one that is queued already keeps its place. */
  unshift(one: T): void {
    if (one.isQueued) return
    one.isQueued = true
    one.next = this.#first
    this.#first = one
    this.#last ??= one
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

  /** Removes and returns all nodes behind the first `kept`, in their order. */
  truncate(kept: number): T[] {
    const taken: T[] = []
    let last: T | null = null
    let one = this.#first
    for (let left = kept; left > 0 && one; left--) {
      last = one
      one = one.next
    }
    if (!one) return taken
    if (last) last.next = null
    else this.#first = null
    this.#last = last
    while (one) {
      const { next }: { next: T | null } = one
      one.isQueued = false
      one.next = null
      taken.push(one)
      one = next
    }
    this.#length -= taken.length
    return taken
  }
}
