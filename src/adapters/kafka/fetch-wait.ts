/** Partitions of a topic, as kafkajs lists them. */
export interface TopicPartitions {
  topic: string
  partitions: number[]
}

/** How long a fetch may wait while partitions are paused, in ms: at first, and once all have been for long. */
const paused = { least: 50, most: 250 }
/** The part of the time since the last pause that it may wait. */
const share = 1 / 8

/**
 * How long a fetch may wait at the broker. It does not ask for paused partitions, and one that is resumed meanwhile
 * waits with it, although what it has buffered may last for less: so while any is paused a fetch waits for a moment
 * only. Those that have been paused for long, since what they hold is not due, are resumed long before it is: where
 * there are no others it may wait for a longer one, and asks the broker less often.
 */
export class FetchWait {
  readonly #told: number
  #since = new Map<string, number>()

  /** @param told how long it may wait, in ms, with nothing paused */
  constructor(told: number) {
    this.#told = told
  }

  /** @param all that are paused now; @param now monotonic, in ms */
  ms(all: readonly TopicPartitions[], now: number): number {
    const since = new Map<string, number>()
    let last = -Infinity
    for (const { topic, partitions } of all) {
      for (const partition of partitions) {
        const key = `${topic}/${partition}`
        const at = this.#since.get(key) ?? now
        since.set(key, at)
        last = Math.max(last, at)
      }
    }
    this.#since = since
    if (since.size === 0) return this.#told
    return Math.min(this.#told, paused.most, Math.max(paused.least, (now - last) * share))
  }
}
