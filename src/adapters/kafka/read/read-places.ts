import type { Kafka } from 'kafkajs'
import type { Place } from '../../../core/ledger/trace.ts'
import type { Logger } from '../../log.ts'
import type { Brokers } from '../link/brokers.ts'
import { readBetween } from './read-range.ts'
import type { OffsetRange } from './topic-offsets.ts'
import type { TopicRecord } from './topic-record.ts'

export interface PlacesSource {
  kafka: Kafka
  /** Its owner closes them. */
  brokers: Brokers
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
