import type { Kafka } from 'kafkajs'
import type { Positions } from './positions.ts'
import { fetchRange } from './topic-offsets.ts'

/** How often to check whether retention removed what was still to come, in ms. */
const recheckMs = 1_000

/** Records that retention deletes before they are read never come: their partition's beginning moves past. */
export class RetentionWatch {
  readonly #kafka: Kafka
  readonly #topic: string
  readonly #positions: Positions
  #timer: NodeJS.Timeout | null = null

  constructor(kafka: Kafka, topic: string, positions: Positions) {
    this.#kafka = kafka
    this.#topic = topic
    this.#positions = positions
  }

  /** Looks for as long as a caller waits for positions. */
  async during(reached: Promise<void>): Promise<void> {
    this.#schedule()
    try {
      await reached
    } finally {
      if (!this.#positions.awaited && this.#timer) {
        clearTimeout(this.#timer)
        this.#timer = null
      }
    }
  }

  #schedule(): void {
    this.#timer ??= setTimeout(async () => {
      try {
        const ranges = await fetchRange(this.#kafka, this.#topic)
        for (const { partition, low } of ranges) this.#positions.advance(partition, low)
      } catch {
        // Brokers that are away are the consumer's to report.
      }
      this.#timer = null
      if (this.#positions.awaited) this.#schedule()
    }, recheckMs)
  }
}
