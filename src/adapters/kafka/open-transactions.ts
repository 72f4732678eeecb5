/** A producer of transactions takes far less: a partition that stands still for longer is reported, in ms. */
const patienceMs = 10_000
/** What was not asked for since, in ms, is not known any more: a paused partition is not fetched. */
const forgottenAfterMs = 30_000
/** More partitions than these are counted in a warning. */
const maxNamed = 3

/** What no reader gets while a transaction is open: a partition's records from `offset` on. */
export interface HeldPartition {
  topic: string
  partition: number
  offset: number
  /** For how long, in ms. */
  ms: number
}

interface Seen {
  topic: string
  partition: number
  /** Up to where readers get records. */
  stable: number
  since: number
  seenAt: number
}

/**
 * Partitions that a transaction holds: whoever begins one and does not end it holds back all that comes behind its first
 * record, for as long as the brokers' `transaction.max.timeout.ms` lets it. Known from the answers to fetches, each of
 * which says where the partition ends, and up to where it may be read.
 */
export class OpenTransactions {
  readonly #seen = new Map<string, Seen>()
  readonly #now: () => number

  /** @param now monotonic, in ms */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /**
   * A fetch says so.
   * @param stable up to where the partition may be read; before its end while a transaction is open, -1 if not known
   * @param end its end
   */
  fetched(topic: string, partition: number, stable: number, end: number): void {
    const key = `${topic}/${partition}`
    if (stable < 0 || stable >= end) return void this.#seen.delete(key)
    const now = this.#now()
    const before = this.#seen.get(key)
    // One that ended and was followed by another moved it.
    const isSame = before?.stable === stable && now - before.seenAt < forgottenAfterMs
    this.#seen.set(key, { topic, partition, stable, since: isSame ? before.since : now, seenAt: now })
  }

  /** Other partitions of these topics are another member's now. */
  assigned(topics: readonly string[], partitions: readonly { topic: string; partition: number }[]): void {
    const own = new Set(partitions.map(({ topic, partition }) => `${topic}/${partition}`))
    for (const [key, { topic }] of this.#seen)
      if (topics.includes(topic) && !own.has(key)) this.#seen.delete(key)
  }

  /** Those that are held for too long. */
  *held(): Generator<HeldPartition> {
    const now = this.#now()
    for (const { topic, partition, stable, since, seenAt } of this.#seen.values())
      if (now - since >= patienceMs && now - seenAt < forgottenAfterMs)
        yield { topic, partition, offset: stable, ms: now - since }
  }

  /** In one line for people; null where nothing is held. */
  warning(): string | null {
    const held = [...this.held()]
    if (held.length === 0) return null
    const named = held.slice(0, maxNamed).map(({ topic, partition, offset, ms }) => {
      const seconds = Math.round(ms / 1_000)
      return `partition ${partition} of ${topic} from offset ${offset} on, for ${seconds} s`
    })
    const others = held.length > maxNamed ? `; and ${held.length - maxNamed} more` : ''
    return `a producer's open transaction holds back ${named.join('; ')}${others}: it has to be committed or aborted`
  }
}
