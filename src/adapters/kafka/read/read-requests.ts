// The requests that read: Fetch, version 11 of the Kafka protocol, ListOffsets, version 2, and OffsetForLeaderEpoch,
// version 3. Every broker since Kafka 2.3 takes them.
import { answerError, type Api, type Throttling } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import { decodeFetch, type FetchAnswer } from '../wire/fetch-answer.ts'
import { WireReader, int32, text } from '../wire/kafka-wire.ts'

const since = 'Kafka 2.3'
const fetchApi: Api = { apiKey: 1, apiName: 'Fetch', versions: [11, 11], since }
const listOffsetsApi: Api = { apiKey: 2, apiName: 'ListOffsets', versions: [2, 2], since }
const epochEndsApi: Api = { apiKey: 23, apiName: 'OffsetForLeaderEpoch', versions: [3, 3], since }

/** Records of transactions that are open or aborted are left out. */
const readCommitted = 1
/** Of everything that one fetch brings, and of nothing less than one batch, unless its reader says another. */
const maxFetchBytes = 10 * 1_024 * 1_024
/** Whoever reads is no broker, has no fetch session, and knows no epoch. */
const [noReplica, noSession, noEpoch] = [-1, 0, -1]

/** What an answer may take beside what it waits for. */
const graceMs = 10_000

/** Kafka's error code for a position that a leader does not have (Kafka protocol, Error Codes). */
export const outOfRange = 1

/** Instead of a time, in ListOffsets. */
export const [theEnd, theBeginning] = [-1, -2]

/** From which offset on a partition is to be read. */
export interface FetchPlace {
  topic: string
  partition: number
  offset: number
  /** How much of it, in bytes. */
  maxBytes: number
}

export interface FetchBounds {
  /** Where there is nothing yet, it waits for that long until there is anything, in ms. */
  maxWaitMs: number
  /** Of all partitions together. */
  maxBytes?: number
}

/**
 * What these partitions hold, each from an offset on. Another one of them comes first each time: what the first ones bring
 * may fill the answer.
 */
export function fetchFrom(
  connection: BrokerConnection,
  places: readonly FetchPlace[],
  { maxWaitMs, maxBytes = maxFetchBytes }: FetchBounds,
): Promise<FetchAnswer> {
  const first = Math.floor(Math.random() * places.length)
  const body = encodeFetch([...places.slice(first), ...places.slice(0, first)], maxWaitMs, maxBytes)
  return connection.ask(fetchApi, body, decodeFetch, maxWaitMs + graceMs)
}

/** Before the topics, and behind them. */
const fetchHeadBytes = 4 * 4 + 1 + 4 + 4 + 4
const fetchEndBytes = 4 + 2
const topicHeadBytes = 2 + 4
const placeBytes = 4 + 4 + 8 + 8 + 4

function encodeFetch(places: readonly FetchPlace[], maxWaitMs: number, maxBytes: number): Buffer {
  const topics = [...Map.groupBy(places, ({ topic }) => topic)]
  const names = topics.reduce((sum, [topic]) => sum + topicHeadBytes + Buffer.byteLength(topic), 0)
  const body = Buffer.allocUnsafe(fetchHeadBytes + names + places.length * placeBytes + fetchEndBytes)
  let at = body.writeInt32BE(noReplica, 0)
  at = body.writeInt32BE(maxWaitMs, at)
  at = body.writeInt32BE(1, at) // answered once there is a byte
  at = body.writeInt32BE(maxBytes, at)
  at = body.writeInt8(readCommitted, at)
  at = body.writeInt32BE(noSession, at)
  at = body.writeInt32BE(noEpoch, at) // of the session
  at = body.writeInt32BE(topics.length, at)
  for (const [topic, its] of topics) {
    const nameBytes = body.write(topic, at + 2)
    at = body.writeInt16BE(nameBytes, at) + nameBytes
    at = body.writeInt32BE(its.length, at)
    for (const { partition, offset, maxBytes: ofPartition } of its) {
      at = body.writeInt32BE(partition, at)
      at = body.writeInt32BE(noEpoch, at) // of the leader
      at = body.writeInt32BE(Math.floor(offset / 2 ** 32), at)
      at = body.writeUInt32BE(offset % 2 ** 32, at)
      at = body.writeBigInt64BE(-1n, at) // where the log starts, which only replicas say
      at = body.writeInt32BE(ofPartition, at)
    }
  }
  at = body.writeInt32BE(0, at) // topics of the session that are not to be read any more
  at = body.writeInt16BE(0, at) // no rack
  return body.subarray(0, at)
}

export interface OffsetQuestion {
  topic: string
  partition: number
  /** Epoch ms: the first record of then or later; or `theEnd`, `theBeginning`. */
  at: number
}

export interface OffsetAnswer {
  topic: string
  partition: number
  errorCode: number
  /** -1 where there is no record of that time or later. */
  offset: number
}

/** Of partitions that this broker leads. */
export async function offsetsFrom(
  connection: BrokerConnection,
  questions: readonly OffsetQuestion[],
): Promise<OffsetAnswer[]> {
  const answer = await connection.ask(listOffsetsApi, encodeListOffsets(questions), decodeListOffsets)
  return answer.offsets
}

/** Of a partition that this broker leads. Rejects as it refuses. */
export async function offsetFrom(connection: BrokerConnection, question: OffsetQuestion): Promise<number> {
  const [answer] = await offsetsFrom(connection, [question])
  if (answer!.errorCode !== 0) throw answerError(answer!.errorCode, question.topic)
  return answer!.offset
}

/** What the leader of a partition has of it. Rejects as it refuses. */
export async function whereToGoOn(
  connection: BrokerConnection,
  { topic, partition }: { topic: string; partition: number },
): Promise<{ low: number; high: number }> {
  // Brokers refuse two questions about one partition at once.
  const low = await offsetFrom(connection, { topic, partition, at: theBeginning })
  return { low, high: await offsetFrom(connection, { topic, partition, at: theEnd }) }
}

function encodeListOffsets(questions: readonly OffsetQuestion[]): Buffer {
  const asked = byTopic(questions, ({ partition, at }) => {
    const one = Buffer.alloc(12)
    one.writeInt32BE(partition, 0)
    one.writeBigInt64BE(BigInt(at), 4)
    return one
  })
  return Buffer.concat([int32(noReplica), Buffer.from([readCommitted]), asked])
}

/** A list of topics, with what is asked of each of their partitions. */
function byTopic<Q extends { topic: string }>(
  questions: readonly Q[],
  encode: (question: Q) => Buffer,
): Buffer {
  const topics = [...Map.groupBy(questions, ({ topic }) => topic)]
  return Buffer.concat([
    int32(topics.length),
    ...topics.flatMap(([topic, its]) => [text(topic), int32(its.length), ...its.map(encode)]),
  ])
}

function decodeListOffsets(payload: Buffer): Throttling & { offsets: OffsetAnswer[] } {
  const answer = new WireReader(payload)
  const throttleMs = answer.int32()
  const offsets = answer.list(() => {
    const topic = answer.text()!
    return answer.list((): OffsetAnswer => {
      const [partition, errorCode] = [answer.int32(), answer.int16()]
      answer.pass(8) // the record's time
      answer.pass(8)
      return { topic, partition, errorCode, offset: Number(payload.readBigInt64BE(answer.at - 8)) }
    })
  })
  return { offsets: offsets.flat(), throttleMs }
}

export interface EpochQuestion {
  topic: string
  partition: number
  /** A leader's, as the batches say that were appended under it. */
  epoch: number
}

/** What the leader has of an epoch. */
export interface EpochEnd {
  topic: string
  partition: number
  errorCode: number
  /** The epoch, or the last one before it of which there is anything; -1 where it knows of none. */
  epoch: number
  /** Behind what was appended up to then. */
  end: number
}

/** Of partitions that this broker leads: up to where their logs are what was read under those epochs (KIP-101, KIP-320). */
export async function epochEndsFrom(
  connection: BrokerConnection,
  questions: readonly EpochQuestion[],
): Promise<EpochEnd[]> {
  const answer = await connection.ask(epochEndsApi, encodeEpochs(questions), decodeEpochEnds)
  return answer.ends
}

/** Whether this broker, which may be none of Apache Kafka's, says where epochs end. */
export const knowsEpochs = (connection: BrokerConnection): boolean =>
  connection.versionOf(epochEndsApi) !== null

function encodeEpochs(questions: readonly EpochQuestion[]): Buffer {
  const asked = byTopic(questions, ({ partition, epoch }) =>
    Buffer.concat([int32(partition), int32(noEpoch), int32(epoch)]),
  )
  return Buffer.concat([int32(noReplica), asked])
}

function decodeEpochEnds(payload: Buffer): Throttling & { ends: EpochEnd[] } {
  const answer = new WireReader(payload)
  const throttleMs = answer.int32()
  const ends = answer.list(() => {
    const topic = answer.text()!
    return answer.list((): EpochEnd => {
      const [errorCode, partition, epoch] = [answer.int16(), answer.int32(), answer.int32()]
      answer.pass(8)
      return { topic, partition, errorCode, epoch, end: Number(payload.readBigInt64BE(answer.at - 8)) }
    })
  })
  return { ends: ends.flat(), throttleMs }
}
