import type { Kafka } from 'kafkajs'
import type { Place } from '../../../core/ledger/trace.ts'
import type { Logger } from '../../log.ts'
import type { Brokers } from '../link/brokers.ts'
import { awaitRange, fetchRange, type OffsetRange } from './topic-offsets.ts'
import { TopicReader } from './topic-reader.ts'
import type { ReadBetweenOptions, TopicRecord } from './topic-record.ts'

/** Records that are taken together. */
const batchSize = 64

/** Resolves once all records within the ranges were handled; in order within a partition, partitions mixed. */
export async function readBetween(
  ranges: readonly OffsetRange[],
  { signal, ...options }: ReadBetweenOptions,
): Promise<void> {
  const filled = ranges.filter(({ low, high }) => low < high)
  if (filled.length === 0) return
  const reader = new TopicReader({
    ...options,
    from: new Map(filled.map(({ partition, low }) => [partition, low])),
    until: new Map(filled.map(({ partition, high }) => [partition, high])),
  })
  try {
    await reader.start(signal)
  } finally {
    await reader.close()
  }
}

export interface ReadTailOptions extends ReadBetweenOptions {
  /** Epoch milliseconds: nothing older. */
  since: number
  /** The maximum number of records, about: the newest, shared evenly among the partitions. */
  atMost: number
  signal: AbortSignal
}

/** Reads the newest records of a topic, up to its end as of the call. Waits for brokers that are away. */
export async function readTail({ since, atMost, ...options }: ReadTailOptions): Promise<void> {
  const { kafka, topic, log, signal } = options
  const ranges = await awaitRange(kafka, topic, log, signal, since)
  const share = Math.ceil(atMost / Math.max(1, ranges.length))
  await readBetween(
    ranges.map(({ partition, low, high }) => ({ partition, low: Math.max(low, high - share), high })),
    options,
  )
}

export interface ReadRangeOptions extends Omit<ReadBetweenOptions, 'onRecord'> {
  /** Epoch milliseconds: begins at the first record of each partition with that timestamp or a later one. */
  since?: number | undefined
  /** Begins at this offset of each partition, or later. */
  from?: number
  /** Called once, before the first record, with the number of offsets in the range (holes included), for progress. */
  onRange?: (total: number) => void
}

/**
 * All records that a topic holds at the call, and then it ends: in order within a partition, partitions mixed.
 * No more is fetched than the caller takes. Leaving the loop early stops the reading and cleans up.
 */
export function readRange(options: ReadRangeOptions): AsyncIterableIterator<TopicRecord> {
  return oneByOne(batchesOfRange(options))
}

async function* batchesOfRange({
  since,
  from = 0,
  onRange,
  ...options
}: ReadRangeOptions): AsyncGenerator<TopicRecord[], void, void> {
  const held = await fetchRange(options.kafka, options.topic, since)
  const ranges = held.map(({ partition, low, high }) => ({ partition, low: Math.max(low, from), high }))
  onRange?.(ranges.reduce((total, { low, high }) => total + Math.max(0, high - low), 0))
  yield* batchesOf(ranges, options)
}

/** As `readRange`, of these offsets. */
export function readSpans(
  ranges: readonly OffsetRange[],
  options: Omit<ReadBetweenOptions, 'onRecord'>,
): AsyncIterableIterator<TopicRecord> {
  return oneByOne(batchesOf(ranges, options))
}

async function* batchesOf(
  ranges: readonly OffsetRange[],
  { signal, ...options }: Omit<ReadBetweenOptions, 'onRecord' | 'onAnswered'>,
): AsyncGenerator<TopicRecord[], void, void> {
  const left = new AbortController()
  const relay = new Relay<TopicRecord[]>()
  let batch: TopicRecord[] = []
  const passOn = () => {
    const full = batch
    batch = []
    return relay.put(full)
  }
  const reading = readBetween(ranges, {
    ...options,
    signal: signal ? AbortSignal.any([signal, left.signal]) : left.signal,
    onRecord(record) {
      if (batch.push(record) >= batchSize) return passOn()
    },
    onAnswered() {
      if (batch.length > 0) return passOn()
    },
  }).then(passOn)
  reading.then(
    () => relay.end(),
    () => relay.end(),
  )
  try {
    for (;;) {
      const taken = await relay.take()
      if (taken === null) break
      yield taken
    }
    await reading
  } finally {
    left.abort()
    relay.end()
    await reading.catch(() => {})
  }
}

/** Passes one thing on at a time: who puts the next one waits until the one before is taken. */
class Relay<T> {
  #held: { thing: T; taken: () => void } | null = null
  #waiting: ((thing: T | null) => void) | null = null
  #hasEnded = false

  async put(thing: T): Promise<void> {
    if (this.#hasEnded) return
    if (this.#waiting) {
      this.#waiting(thing)
      this.#waiting = null
      return
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#held = { thing, taken: resolve }
    await promise
  }

  /** Null once it has ended. */
  async take(): Promise<T | null> {
    const held = this.#held
    this.#held = null
    held?.taken()
    if (held) return held.thing
    if (this.#hasEnded) return null
    const { promise, resolve } = Promise.withResolvers<T | null>()
    this.#waiting = resolve
    return promise
  }

  /** Nobody takes anything any more, or nothing more comes. */
  end(): void {
    this.#hasEnded = true
    this.#held?.taken()
    this.#waiting?.(null)
    this.#waiting = null
  }
}

/** An async generator takes 5 µs for each record that it passes on, and reading one takes 1. */
function oneByOne<T>(batches: AsyncGenerator<T[], void, void>): AsyncIterableIterator<T> {
  let batch: T[] = []
  let next = 0
  return {
    async next(): Promise<IteratorResult<T, void>> {
      while (next === batch.length) {
        const { done, value } = await batches.next()
        if (done) return { done, value: undefined }
        ;[batch, next] = [value, 0]
      }
      return { done: false, value: batch[next++]! }
    },
    async return(): Promise<IteratorResult<T, void>> {
      await batches.return()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
}

export interface PlacesSource {
  kafka: Kafka
  /** Its owner closes them; without, the reading has a link of its own. */
  brokers?: Brokers
  log: Logger
}

/** Places of one partition that are so near are read in one go, with what lies between them. */
const nearOffsets = 2_000
/** A record takes several times its bytes while it is read, and next to nothing but a few is wanted. */
const fetchBytes = 128 * 1_024

/** The records at these places, as far as they are there, in no certain order. They must lie below their topics' ends. */
export async function readPlaces(
  { brokers, kafka, log }: PlacesSource,
  places: readonly Place[],
  signal?: AbortSignal,
): Promise<TopicRecord[]> {
  const found: TopicRecord[] = []
  const topics = new Set(places.map(({ topic }) => topic))
  const readings = [...topics].flatMap((topic) => {
    const offsets = Map.groupBy(
      places.filter((place) => place.topic === topic),
      ({ partition }) => partition,
    )
    const wanted = new Map(
      [...offsets].map(([partition, its]) => [partition, new Set(its.map(({ offset }) => offset))]),
    )
    return roundsOf(wanted).map((ranges) =>
      readBetween(ranges, {
        kafka,
        brokers,
        topic,
        log,
        signal,
        fetchBytes,
        onRecord: (record) => {
          if (wanted.get(record.partition)!.has(record.offset)) found.push(record)
        },
      }),
    )
  })
  await Promise.all(readings)
  return found
}

/** What can be read at once: one range of each partition. */
export function roundsOf(wanted: ReadonlyMap<number, ReadonlySet<number>>): OffsetRange[][] {
  const rounds: OffsetRange[][] = []
  for (const [partition, offsets] of wanted) {
    const ranges: OffsetRange[] = []
    for (const offset of [...offsets].sort((a, b) => a - b)) {
      const last = ranges.at(-1)
      if (last && offset - last.high < nearOffsets) last.high = offset + 1
      else ranges.push({ partition, low: offset, high: offset + 1 })
    }
    ranges.forEach((range, index) => (rounds[index] ??= []).push(range))
  }
  return rounds
}
