import { readBetween } from './read-between.ts'
import type { ReadBetweenOptions } from './read-between.ts'
import { fetchRange } from './topic-offsets.ts'
import type { TopicRecord } from './topic-reader.ts'

export interface ReadRangeOptions extends Omit<ReadBetweenOptions, 'onRecord'> {
  /** Epoch milliseconds: begins at the first record of each partition with that timestamp or a later one. */
  since?: number | undefined
  /** Told once, before the first record: how many offsets lie in the range (holes included), for progress. */
  onRange?: (total: number) => void
}

/**
 * All records that a topic holds at the call, and then it ends: in order within a partition, partitions mixed.
 * No more is fetched than the reader takes. Leaving the loop early stops the reading and cleans up.
 */
export async function* readRange(options: ReadRangeOptions): AsyncGenerator<TopicRecord, void, void> {
  const { kafka, topic, groupPrefix, log, since, signal, onRange } = options
  const ranges = await fetchRange(kafka, topic, since)
  onRange?.(ranges.reduce((total, { low, high }) => total + high - low, 0))
  const slot = new Slot<TopicRecord>()
  const left = new AbortController()
  const reading = readBetween(ranges, {
    kafka,
    topic,
    groupPrefix,
    log,
    onRecord: (record) => slot.put(record),
    signal: signal ? AbortSignal.any([signal, left.signal]) : left.signal,
  }).then(
    () => slot.finish(null),
    (error: unknown) => slot.finish(error),
  )
  try {
    for (let record = await slot.take(); record !== null; record = await slot.take()) yield record
  } finally {
    left.abort()
    slot.abandon()
    await reading
  }
}

/** Hands one value at a time from a writer to a reader; the writer waits until it was taken. */
class Slot<T> {
  #value: T | null = null
  #taken: (() => void) | null = null
  #arrived: (() => void) | null = null
  #abandoned = false
  #end: { error: unknown } | null = null

  async put(value: T): Promise<void> {
    if (this.#abandoned) return
    this.#value = value
    this.#arrived?.()
    await new Promise<void>((resolve) => (this.#taken = resolve))
  }

  /** The consumer gave up: writers no longer wait. */
  abandon(): void {
    this.#abandoned = true
    this.#taken?.()
  }

  /** Null once finished and empty; throws the error it was finished with. */
  async take(): Promise<T | null> {
    for (;;) {
      const value = this.#value
      if (value !== null) {
        this.#value = null
        this.#taken?.()
        return value
      }
      if (this.#end?.error) throw this.#end.error
      if (this.#end) return null
      await new Promise<void>((resolve) => (this.#arrived = resolve))
    }
  }

  finish(error: unknown): void {
    this.#end = { error }
    this.#arrived?.()
  }
}
