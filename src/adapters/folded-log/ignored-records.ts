import type { Logger } from '../log.ts'

/** What is counted of records of our own topics that are ignored. */
export interface IgnoredCounts {
  ignored(topic: string): void
}

/** Of each reader the first ones get a line of their own, and then the 20th, the 40th, the 80th …. */
const namedFirst = 10

/**
 * Reports records of one of our own topics that cannot be read and are ignored. Every client that may write there can write
 * a million of them: each is counted, and the log stays readable.
 */
export class IgnoredRecords {
  readonly #log: Logger
  readonly #counts: IgnoredCounts | undefined
  #ignored = 0
  #nextNamed = 2 * namedFirst

  constructor(log: Logger, counts: IgnoredCounts | undefined) {
    this.#log = log
    this.#counts = counts
  }

  add(
    {
      topic,
      partition,
      offset,
      problem = null,
    }: { topic: string; partition: number; offset: number; problem?: string | null },
    why: string,
  ): void {
    const reason = problem ?? why
    this.#counts?.ignored(topic)
    this.#ignored++
    if (this.#ignored > namedFirst) {
      if (this.#ignored < this.#nextNamed) return
      this.#nextNamed *= 2
    }
    this.#log.error(
      { topic, partition, offset, reason, ignored: this.#ignored },
      `${topic} holds a record at offset ${offset} of partition ${partition} that cannot be read, and it is ignored: ${reason}`,
    )
  }
}
