// A produce request and its answer, versions 3 to 7 of the Kafka protocol, whose bytes are the same but for one field.
import type { Api, Throttling } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import { pack } from '../compression/pack.ts'
import { crc32c } from '../wire/crc32c.ts'
import type { PartitionBatch } from './partition-write.ts'
import type { BatchSequence } from './sequences.ts'

/** In these versions request bodies are the same: record batches of magic 2. */
const produceApi: Api = { apiKey: 0, apiName: 'Produce', versions: [3, 7], since: 'Kafka 0.11' }
/** What a broker that has given up on its replicas may take to say so. */
const graceMs = 3_000
/** From this version on the answer says where the partition's log starts. */
const logStartSince = 5
/** acks=all: every in-sync replica has it. */
const allReplicas = -1

const batchHeadBytes = 61
/** Of the attributes of a batch: how its records are compressed. Their times are those of their creation. */
const codecs = { none: 0, gzip: 1 }

export interface SequencedBatch {
  batch: PartitionBatch
  sequence: BatchSequence
}

/** The batches of one topic in a request. */
export interface TopicBatches {
  topic: string
  batches: readonly SequencedBatch[]
}

/** What the broker says of one partition. */
export interface PartitionAnswer {
  topic: string
  partition: number
  /** 0: written and acknowledged by all in-sync replicas. */
  errorCode: number
  /** Offset of the first record; -1 when the broker does not say. */
  baseOffset: number
  /** Epoch milliseconds; -1 unless the topic's times are those of the append. */
  appendTime: number
}

export interface ProduceAnswer extends Throttling {
  partitions: PartitionAnswer[]
}

/** @param timeoutMs how long the broker may wait for its replicas; it is given a little longer to say so */
export function produce(
  connection: BrokerConnection,
  topics: readonly TopicBatches[],
  timeoutMs: number,
): Promise<ProduceAnswer> {
  const body = encodeProduceRequest(topics, timeoutMs)
  return connection.ask(produceApi, body, decodeProduceResponse, timeoutMs + graceMs)
}

/** The body of a produce request with acks=all, one record batch a partition, in one buffer. */
export function encodeProduceRequest(
  topics: readonly TopicBatches[],
  timeoutMs: number,
  now = Date.now(),
): Buffer {
  const buffer = Buffer.allocUnsafe(maxSize(topics))
  let at = buffer.writeInt16BE(-1, 0) // no transaction
  at = buffer.writeInt16BE(allReplicas, at)
  at = buffer.writeInt32BE(timeoutMs, at)
  at = buffer.writeInt32BE(topics.length, at)
  for (const { topic, batches } of topics) {
    at = buffer.writeInt16BE(Buffer.byteLength(topic), at)
    at += buffer.write(topic, at)
    at = buffer.writeInt32BE(batches.length, at)
    for (const one of batches) {
      at = buffer.writeInt32BE(one.batch.partition, at)
      const end = writeBatch(buffer, at + 4, one, now)
      buffer.writeInt32BE(end - at - 4, at)
      at = end
    }
  }
  return buffer.subarray(0, at)
}

function writeBatch(buffer: Buffer, start: number, { batch, sequence }: SequencedBatch, now: number): number {
  const { count } = batch
  const { identity, first } = sequence
  buffer.writeBigInt64BE(0n, start) // first offset
  buffer.writeInt32BE(0, start + 12) // partition leader epoch
  buffer[start + 16] = 2 // magic
  buffer.writeInt32BE(count - 1, start + 23) // last offset delta
  buffer.writeBigInt64BE(BigInt(now), start + 27) // first timestamp
  buffer.writeBigInt64BE(BigInt(now), start + 35) // max timestamp
  buffer.writeBigInt64BE(identity.id, start + 43)
  buffer.writeInt16BE(identity.epoch, start + 51)
  buffer.writeInt32BE(first, start + 53)
  buffer.writeInt32BE(count, start + 57)
  const from = start + batchHeadBytes
  let end = from + batch.copyTo(buffer, from)
  const packed = batch.isPacked ? pack(buffer.subarray(from, end)) : null
  buffer.writeInt16BE(packed === null ? codecs.none : codecs.gzip, start + 21)
  if (packed !== null) end = from + packed.copy(buffer, from)
  buffer.writeInt32BE(end - start - 12, start + 8)
  buffer.writeUInt32BE(crc32c(buffer, start + 21, end), start + 17)
  return end
}

function maxSize(topics: readonly TopicBatches[]): number {
  let size = 12
  for (const { topic, batches } of topics) {
    size += topic.length * 3 + 6
    for (const { batch } of batches) size += batchHeadBytes + 8 + batch.bytes
  }
  return size
}

/** Reads an answer. Throws a RangeError when it is cut short. */
export function decodeProduceResponse(payload: Buffer, version: number): ProduceAnswer {
  const partitions: PartitionAnswer[] = []
  let at = 4
  for (let topics = payload.readInt32BE(0); topics > 0; topics--) {
    const nameBytes = payload.readInt16BE(at)
    const topic = payload.toString('utf8', at + 2, at + 2 + nameBytes)
    at += 2 + nameBytes
    const count = payload.readInt32BE(at)
    at += 4
    for (let left = count; left > 0; left--) {
      partitions.push({
        topic,
        partition: payload.readInt32BE(at),
        errorCode: payload.readInt16BE(at + 4),
        baseOffset: Number(payload.readBigInt64BE(at + 6)),
        appendTime: Number(payload.readBigInt64BE(at + 14)),
      })
      at += version >= logStartSince ? 30 : 22
    }
  }
  return { partitions, throttleMs: payload.readInt32BE(at) }
}
