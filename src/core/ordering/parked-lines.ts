import { IntrusiveQueue, type QueueNode } from '../intrusive-queue.ts'

/** A parked call, as far as its place in the order goes. */
export interface Parked<T> extends QueueNode<T> {
  readonly line: string
  readonly destinationId: string
  /** In its partition of the topic of parked calls. */
  readonly offset: number
}

interface Line<T extends Parked<T>> {
  head: T
  readonly waiting: IntrusiveQueue<T>
}

/**
 * The parked calls of one partition, by line: the first of each is tried, the others wait until it has ended. Pure.
 */
export class ParkedLines<T extends Parked<T>> {
  readonly #lines = new Map<string, Line<T>>()
  #count = 0

  /** Parked calls that have not ended. */
  get count(): number {
    return this.#count
  }

  /** The first call of each line. */
  *heads(): Iterable<T> {
    for (const { head } of this.#lines.values()) yield head
  }

  /** Puts a call behind those of its line, in the order of their offsets. Returns the line's first one: itself, where there was none. */
  add(call: T): T {
    this.#count++
    const line = this.#lines.get(call.line)
    if (line) line.waiting.push(call)
    else this.#lines.set(call.line, { head: call, waiting: new IntrusiveQueue() })
    return line?.head ?? call
  }

  /** How many wait behind the first of the line. */
  waiting({ line }: Pick<T, 'line'>): number {
    return this.#lines.get(line)?.waiting.length ?? 0
  }

  /** The first of its line has ended: the next one, which is the first now; null where there is none. */
  ended(call: T): T | null {
    const line = this.#lines.get(call.line)
    if (line?.head !== call) return null
    this.#count--
    const next = line.waiting.shift()
    if (next) line.head = next
    else this.#lines.delete(call.line)
    return next
  }

  /**
   * The calls to be let go where there are too many: first ones of the destination that has most here, the oldest of them,
   * or of all of them those that lie before `offset`.
   */
  crowding(most: number, offset: number): T[] {
    const counts = new Map<string, number>()
    for (const { head, waiting } of this.#lines.values())
      counts.set(head.destinationId, (counts.get(head.destinationId) ?? 0) + 1 + waiting.length)
    const [fullest] = [...counts].sort(([, one], [, other]) => other - one)[0] ?? []
    const heads = [...this.heads()].sort((one, other) => one.offset - other.offset)
    const old = heads.filter((head) => head.offset < offset)
    const its = heads.filter((head) => head.destinationId === fullest && head.offset >= offset)
    return [...old, ...its].slice(0, Math.max(most, 1))
  }
}
