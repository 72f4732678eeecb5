/** One user's calls for one destination, in one text. A destination's id holds no space. */
export const lineOf = (destinationId: string, key: string): string => `${destinationId} ${key}`

interface BlockedLine {
  /** Calls on their way to the topic of parked calls, of which it is not known yet where they lie there. */
  open: number
  /**
   * Those that lie there and have not ended, by partition of that topic: one, unless some were added. In the order of their
   * offsets; null where the broker did not say.
   */
  places: Map<number, (number | null)[]>
  /** When it was last seen that some of them have ended, by any clock that never goes back. */
  endedAt: number
  /** How long one of them took, by those that were seen to end last, in ms. */
  eachMs: number
}

/** For so long after some of its calls have ended, a line makes progress, in ms. */
const drainingMs = 2_000
/** What will be free within that time is soon free, in ms: what is held for it holds up its partition's commits. */
const soonMs = 10_000

function leftOf({ places }: BlockedLine): number {
  let left = 0
  for (const offsets of places.values()) left += offsets.length
  return left
}

/**
 * Which lines of one partition of calls are blocked: a call of theirs failed, and was parked, and so is every later one,
 * until all that are parked have ended. Who sends parked calls is another process: what it has ended is known from what it
 * has committed. Pure.
 */
export class BlockedLines {
  readonly #lines = new Map<string, BlockedLine>()

  get size(): number {
    return this.#lines.size
  }

  has(line: string): boolean {
    return this.#lines.has(line)
  }

  /** Its last parked calls are ending: for a later one to wait a moment is better than to be parked behind them. */
  isDraining(line: string, now: number): boolean {
    const found = this.#lines.get(line)
    if (found === undefined || found.open > 0 || now - found.endedAt >= drainingMs) return false
    return leftOf(found) * found.eachMs <= soonMs
  }

  block(line: string): void {
    if (!this.#lines.has(line))
      this.#lines.set(line, { open: 0, places: new Map(), endedAt: -Infinity, eachMs: Infinity })
  }

  /** Another call of the line goes to the topic. Blocks it. */
  opened(line: string): void {
    this.block(line)
    this.#lines.get(line)!.open++
  }

  /** It lies there; `offset` is null where the broker did not say. */
  placed(line: string, partition: number, offset: number | null): void {
    const found = this.#lines.get(line)!
    found.open--
    const places = found.places.get(partition)
    if (places) places.push(offset)
    else found.places.set(partition, [offset])
  }

  /** It ended otherwise, and will not lie there. */
  closed(line: string): void {
    this.#lines.get(line)!.open--
  }

  /** A call of the line was found there that has not ended. Blocks it. */
  found(line: string, partition: number, offset: number): void {
    this.opened(line)
    this.placed(line, partition, offset)
  }

  /** Partitions of the topic where calls lie that are waited for. */
  partitions(): Set<number> {
    const all = new Set<number>()
    for (const { places } of this.#lines.values()) for (const partition of places.keys()) all.add(partition)
    return all
  }

  /** Somewhere the broker did not say where a call lies: `endsAre` is needed. */
  get hasUnknown(): boolean {
    for (const { places } of this.#lines.values())
      for (const offsets of places.values()) if (offsets.includes(null)) return true
    return false
  }

  /** What a broker did not say lies before the end that the partition has now. */
  endsAre(ends: ReadonlyMap<number, number>): void {
    for (const { places } of this.#lines.values())
      for (const [partition, offsets] of places) {
        const end = ends.get(partition)
        if (end === undefined || !offsets.includes(null)) continue
        places.set(
          partition,
          offsets.map((offset) => offset ?? end - 1),
        )
      }
  }

  /** Looks which parked calls have ended, and frees the lines of which all have; returns these. */
  free(hasEnded: (partition: number, offset: number) => boolean, now: number): string[] {
    const freed: string[] = []
    for (const [line, state] of this.#lines) {
      const { open, places } = state
      const before = leftOf(state)
      for (const [partition, offsets] of places) {
        const left = offsets.filter((offset) => offset === null || !hasEnded(partition, offset))
        if (left.length > 0) places.set(partition, left)
        else places.delete(partition)
      }
      const ended = before - leftOf(state)
      if (ended > 0) {
        state.eachMs = (state.endedAt === -Infinity ? drainingMs : now - state.endedAt) / ended
        state.endedAt = now
      }
      if (open > 0 || places.size > 0) continue
      this.#lines.delete(line)
      freed.push(line)
    }
    return freed
  }
}
