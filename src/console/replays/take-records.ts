import type { StoredRecord } from '../dead-letters/dead-letter-store.ts'
import type { ReplayOutbox } from './replay-outbox.ts'
import { keyOfPlace, type PartitionSpan, type ReplaySource } from './replay-source.ts'

/** Records between two looks at whether it is to go on, where none of them is sent. */
const lookEvery = 2_000

/** Reads what a replay has to look at, from where it was, and notes each record once it was looked at. */
export class RecordTaker {
  readonly #source: ReplaySource
  readonly #outbox: ReplayOutbox
  readonly #signal: AbortSignal
  #sinceLook = 0

  constructor(source: ReplaySource, outbox: ReplayOutbox, signal: AbortSignal) {
    this.#source = source
    this.#outbox = outbox
    this.#signal = signal
  }

  /**
   * What is sent of a record is added to the outbox by `look`.
   *
   * @param committed by `topic/partition`: what lies behind is left for later. Null: nothing is.
   * @returns false where something was left
   */
  async take(
    topic: string,
    spans: readonly PartitionSpan[],
    committed: ReadonlyMap<string, number> | null,
    look: (record: StoredRecord) => Promise<void>,
  ): Promise<boolean> {
    const endOf = ({ partition, high }: PartitionSpan) =>
      committed === null ? high : Math.min(high, committed.get(keyOfPlace({ topic, partition })) ?? 0)
    const now = await this.#left(topic, spans, endOf)
    for await (const record of this.#source.read(topic, now, this.#signal)) {
      await look(record)
      this.#outbox.note({ topic, partition: record.partition, offset: record.offset }, 'looked')
      if (!this.#outbox.isFull && ++this.#sinceLook < lookEvery) continue
      this.#sinceLook = 0
      await this.#outbox.flush()
    }
    this.#signal.throwIfAborted()
    for (const { partition, low, high } of now)
      if (low < high) this.#outbox.reached({ topic, partition }, high)
    return spans.every((span) => span.low >= span.high || endOf(span) >= span.high)
  }

  async #left(
    topic: string,
    spans: readonly PartitionSpan[],
    endOf: (span: PartitionSpan) => number,
  ): Promise<PartitionSpan[]> {
    const held = new Map((await this.#source.spans(topic)).map((span) => [span.partition, span]))
    return spans.map((span) => {
      const { partition, low, high } = span
      const place = { topic, partition }
      const next = Math.max(this.#outbox.positionOf(place) ?? 0, low)
      const kept = Math.max(next, held.get(partition)?.low ?? 0)
      // Retention was faster than the replay.
      if (kept > next && next < high)
        this.#outbox.note({ ...place, offset: Math.min(kept, high) - 1 }, 'lost', Math.min(kept, high) - next)
      return { partition, low: kept, high: endOf(span) }
    })
  }
}
