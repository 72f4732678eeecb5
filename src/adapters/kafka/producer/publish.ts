import { PostriderError } from '../../../errors.ts'
import type { EncodedRecord } from '../../../forwarder/settle/record-publisher.ts'
import { Cursor } from '../wire/kafka-wire.ts'
import { murmur2, partitionOfHash } from '../wire/murmur2.ts'
import { RecordList } from '../wire/read-batches.ts'
import type { KafkaProducer } from './kafka-producer.ts'
import {
  ProduceFailure,
  kafkaErrors,
  type AcknowledgedBatch,
  type FailedBatch,
  type WriteLimits,
} from './partition-write.ts'

/** A batch stays below the broker's limit on a partition's batch (1 MB) whichever partition its records fall to. */
const maxBatchBytes = 512 * 1024
const maxBatchRecords = 1_000
/** What a record costs beside its own bytes, at most: its head, and that of a record batch (KIP-98). */
const recordOverheadBytes = 128

/** How long a write may take that a caller waits for, in ms: longer than leaders take to move. */
export const acknowledgeWithinMs = 30_000

export interface PublishOptions extends WriteLimits {
  /** Of all records. Without one, that of each record's key by murmur2; those without a key take turns. */
  partition?: number
  /** Batches are compressed: for what is alike, and lies in Kafka for long. */
  isPacked?: boolean
}

/** Records of one partition that were appended one after another. */
export interface PublishedBatch {
  partition: number
  baseOffset: number
  appendTime: number
  records: readonly EncodedRecord[]
}

/** What became of each record. */
export interface PublishReport {
  acknowledged: PublishedBatch[]
  /** The topic takes no record of this size. */
  tooLarge: EncodedRecord[]
  /** Records that may or may not be in the topic: the deadline passed, or the broker refuses. */
  failed: { failure: ProduceFailure; records: EncodedRecord[] } | null
}

let turn = Math.floor(Math.random() * 1_000)

/**
 * Writes encoded records to a topic with acks=all, in batches bounded by bytes, one after another: records of one
 * partition keep their order. A batch that the broker finds too large is sent record by record. After a failure
 * nothing more is sent. Rejects with a ProduceFailure when the topic is not known by the deadline, with PostriderError
 * `invariant` when records are not accounted for, and with `kafka_unavailable` when the producer is closed.
 */
export async function publish(
  producer: KafkaProducer,
  topic: string,
  records: readonly EncodedRecord[],
  options: PublishOptions = {},
): Promise<PublishReport> {
  const report: PublishReport = { acknowledged: [], tooLarge: [], failed: null }
  const partitions = producer.partitions(topic) ?? (await producer.ready(topic, options))
  for (let from = 0; from < records.length;) {
    const to = endOfBatch(records, from)
    const lists = byPartition(records, { from, to }, partitions, options)
    await writeLists(producer, topic, lists, to - from, options, report)
    if (report.failed !== null) {
      report.failed.records.push(...records.slice(to))
      break
    }
    from = to
  }
  check(topic, records.length, report)
  return report
}

/**
 * As `publish`, for callers that can do nothing about a part of it: rejects with a ProduceFailure unless every record
 * is acknowledged within `withinMs`, by default 30 s. Records may be in the topic all the same.
 */
export async function publishAll(
  producer: KafkaProducer,
  topic: string,
  records: readonly EncodedRecord[],
  {
    withinMs = acknowledgeWithinMs,
    partition,
    mayWrite,
  }: { withinMs?: number; partition?: number } & Pick<WriteLimits, 'mayWrite'> = {},
): Promise<PublishedBatch[]> {
  const deadline = performance.now() + withinMs
  const options = { deadline, mayWrite, ...(partition !== undefined && { partition }) }
  const { acknowledged, tooLarge, failed } = await publish(producer, topic, records, options)
  if (failed) throw failed.failure
  if (tooLarge.length > 0) throw ProduceFailure.ofCode(kafkaErrors.messageTooLarge)
  return acknowledged
}

async function writeLists(
  producer: KafkaProducer,
  topic: string,
  lists: readonly RecordList[],
  count: number,
  options: PublishOptions,
  report: PublishReport,
): Promise<void> {
  const { acknowledged, failed } = await producer.write(topic, lists, count, options)
  for (const one of acknowledged) report.acknowledged.push(published(one))
  for (const one of failed) await settleFailed(producer, topic, one, options, report)
}

async function settleFailed(
  producer: KafkaProducer,
  topic: string,
  { batch, failure }: FailedBatch,
  options: PublishOptions,
  report: PublishReport,
): Promise<void> {
  const { records, partition } = batch as RecordList
  if (!failure.isTooLarge) {
    report.failed ??= { failure, records: [] }
    report.failed.records.push(...records)
  } else if (records.length === 1) report.tooLarge.push(records[0]!)
  else
    for (const [index, record] of records.entries()) {
      if (report.failed !== null) {
        report.failed.records.push(...records.slice(index))
        return
      }
      const list = new RecordList(partition, options.isPacked)
      list.append(record)
      await writeLists(producer, topic, [list], 1, options, report)
    }
}

/** One past the last record that goes out together with the one at `from`. */
function endOfBatch(records: readonly EncodedRecord[], from: number): number {
  let bytes = 0
  let to = from
  while (to < records.length && to - from < maxBatchRecords) {
    bytes += sizeOf(records[to]!)
    if (bytes > maxBatchBytes && to > from) break
    to++
  }
  return to
}

/** What a record counts for in a batch, at most. */
export const sizeOf = ({ start, end }: EncodedRecord): number => end - start + recordOverheadBytes

function byPartition(
  records: readonly EncodedRecord[],
  { from, to }: { from: number; to: number },
  partitions: number,
  { partition: fixed, isPacked }: PublishOptions,
): RecordList[] {
  const lists = new Map<number, RecordList>()
  for (let index = from; index < to; index++) {
    const record = records[index]!
    const partition = fixed ?? partitionOf(record, partitions)
    let list = lists.get(partition)
    if (list === undefined) lists.set(partition, (list = new RecordList(partition, isPacked)))
    list.append(record)
  }
  return [...lists.values()]
}

/** murmur2, as Java's producers and librdkafka's murmur2_random: one user's records share a partition. */
function partitionOf({ block, start }: EncodedRecord, partitions: number): number {
  const cursor = new Cursor(block, start)
  const length = cursor.pass()
  if (length < 0) return turn++ % partitions
  return partitionOfHash(murmur2(block, cursor.at - length, cursor.at), partitions)
}

const published = ({ batch, baseOffset, appendTime }: AcknowledgedBatch): PublishedBatch => ({
  partition: batch.partition,
  baseOffset,
  appendTime,
  records: (batch as RecordList).records,
})

/** As the producer's own check, over everything that was handed in here. */
function check(topic: string, given: number, { acknowledged, tooLarge, failed }: PublishReport): void {
  const known = acknowledged.reduce((sum, { records }) => sum + records.length, 0)
  const accounted = known + tooLarge.length + (failed?.records.length ?? 0)
  if (accounted !== given)
    throw new PostriderError(
      'invariant',
      `a bug: of ${given} records for ${topic} ${accounted} are accounted for`,
    )
}
