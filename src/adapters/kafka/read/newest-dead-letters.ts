import type {
  NewestOptions,
  PageStart,
  StoredDeadLetter,
} from '../../../console/dead-letters/dead-letter-store.ts'
import { readBetween } from './read-range.ts'
import { fetchRange } from './topic-offsets.ts'
import type { ReadBetweenOptions, TopicRecord } from './topic-record.ts'

/** Where the records are. */
type RecordsOf = Omit<ReadBetweenOptions, 'onRecord' | 'signal'>

/** Records looked through for one page at most; its `next` continues from there. */
const maxLooked = 20_000
/** Records of a partition that are read at once: each time more, for what is looked for is rare. */
const firstSlice = 200
const growth = 5

/** A partition, read backwards slice by slice. */
interface Backwards {
  partition: number
  /** The first offset that may be of interest. */
  low: number
  /** What lies below is not read yet. */
  readTo: number
  /** Read and not taken; the newest last. */
  records: { offset: number; timestamp: number; found: unknown }[]
  /** Behind the next one to take. */
  before: number
}

/**
 * The newest dead letters first, by the time at which the broker got them, which only grows within a partition.
 * What `pick` made of a record is kept, the record is not: memory does not depend on their size. What the broker
 * got before `since` (epoch milliseconds) is left out.
 */
export async function newestDeadLetters<T>(
  source: RecordsOf,
  { limit, before, pick, signal }: NewestOptions<T>,
  since: number | undefined,
  read: (record: TopicRecord) => Promise<StoredDeadLetter>,
): Promise<{ deadLetters: T[]; next: PageStart | null }> {
  const partitions = (await fetchRange(source.kafka, source.topic, since)).map(
    ({ partition, low, high }): Backwards => {
      // A partition that a cursor does not name was added since: nothing older lies there.
      const end = before === null ? high : Math.min(before.get(partition) ?? low, high)
      return { partition, low: Math.min(low, end), readTo: end, records: [], before: end }
    },
  )
  const deadLetters: T[] = []
  let looked = 0
  for (let slice = firstSlice; deadLetters.length < limit && looked < maxLooked; slice *= growth) {
    await readSlices(source, partitions, slice, signal, async (record) => pick(await read(record)))
    for (;;) {
      // The next one may still lie in a partition of which nothing is at hand.
      if (partitions.some(({ records, readTo, low }) => records.length === 0 && readTo > low)) break
      const newest = newestOf(partitions)
      if (newest === null) return { deadLetters, next: null }
      const { offset, found } = newest.records.pop()!
      newest.before = offset
      looked++
      if (found !== null) deadLetters.push(found as T)
      if (deadLetters.length === limit || looked === maxLooked) break
    }
  }
  const isEnd = partitions.every(({ records, readTo, low }) => records.length === 0 && readTo <= low)
  return {
    deadLetters,
    next: isEnd ? null : new Map(partitions.map((each) => [each.partition, each.before])),
  }
}

function newestOf(partitions: readonly Backwards[]): Backwards | null {
  let newest: Backwards | null = null
  for (const each of partitions) {
    const last = each.records.at(-1)
    if (last && (newest === null || last.timestamp > newest.records.at(-1)!.timestamp)) newest = each
  }
  return newest
}

/** Reads the next slice of each partition of which nothing is at hand, all at once. */
async function readSlices(
  source: RecordsOf,
  partitions: readonly Backwards[],
  slice: number,
  signal: AbortSignal | undefined,
  find: (record: TopicRecord) => Promise<unknown>,
): Promise<void> {
  const wanted = new Map(
    partitions
      .filter(({ records, readTo, low }) => records.length === 0 && readTo > low)
      .map((each) => [each.partition, each]),
  )
  if (wanted.size === 0) return
  const ranges = [...wanted.values()].map(({ partition, low, readTo }) => ({
    partition,
    low: Math.max(low, readTo - slice),
    high: readTo,
  }))
  await readBetween(ranges, {
    ...source,
    signal,
    async onRecord(record) {
      const { partition, offset, timestamp } = record
      wanted.get(partition)!.records.push({ offset, timestamp, found: await find(record) })
    },
  })
  for (const { partition, low } of ranges) wanted.get(partition)!.readTo = low
}
