// The requests that read: Fetch, version 11 of the Kafka protocol, and ListOffsets, version 2. Every broker since
// Kafka 2.3 takes them.
import type { Api, Throttling } from '../kafkajs-internals.ts'
import type { BrokerConnection } from '../link/broker-connection.ts'
import { decodeFetch, type Undecoded } from '../wire/fetch-answer.ts'
import { WireReader, int32, text } from '../wire/kafka-wire.ts'

const since = 'Kafka 2.3'
const fetchApi: Api = { apiKey: 1, apiName: 'Fetch', versions: [11, 11], since }
const listOffsetsApi: Api = { apiKey: 2, apiName: 'ListOffsets', versions: [2, 2], since }

/** Records of transactions that are open or aborted are left out. */
const readCommitted = 1
/** Of everything that one fetch brings, and of nothing less than one batch. */
const maxFetchBytes = 10 * 1_024 * 1_024
/** Whoever reads is no broker, has no fetch session, and knows no epoch. */
const [noReplica, noSession, noEpoch] = [-1, 0, -1]

/** What an answer may take beside what it waits for. */
const graceMs = 10_000

/** Instead of a time, in ListOffsets. */
export const [theEnd, theBeginning] = [-1, -2]

/** From which offset on a partition is to be read. */
export interface FetchPlace {
  partition: number
  offset: number
  /** How much of it, in bytes. */
  maxBytes: number
}

/** One partition's part of an answer to Fetch. */
export interface FetchedPart {
  partition: number
  /** 0: what it holds from that offset on, which may be nothing yet. */
  errorCode: number
  /** Up to where it may be read: before its end while a transaction is open. */
  stableOffset: number
  /** Its end: the offset behind what all in-sync replicas have. */
  end: number
  records: Undecoded
}

export interface FetchAnswer extends Throttling {
  /** 0, or why no partition was read. */
  errorCode: number
  parts: FetchedPart[]
}

/**
 * What these partitions hold, each from an offset on; where that is nothing yet, once there is anything, for which it
 * waits up to `maxWaitMs`.
 */
export function fetchFrom(
  connection: BrokerConnection,
  topic: string,
  places: readonly FetchPlace[],
  maxWaitMs: number,
): Promise<FetchAnswer> {
  const body = encodeFetch(topic, places, maxWaitMs)
  return connection.ask(fetchApi, body, decodeFetchAnswer, maxWaitMs + graceMs)
}

function encodeFetch(topic: string, places: readonly FetchPlace[], maxWaitMs: number): Buffer {
  const name = text(topic)
  const body = Buffer.alloc(4 * 7 + 1 + name.length + places.length * 28 + 4 + 4 + 2)
  let at = body.writeInt32BE(noReplica, 0)
  at = body.writeInt32BE(maxWaitMs, at)
  at = body.writeInt32BE(1, at) // answered once there is a byte
  at = body.writeInt32BE(maxFetchBytes, at)
  at = body.writeInt8(readCommitted, at)
  at = body.writeInt32BE(noSession, at)
  at = body.writeInt32BE(noEpoch, at) // of the session
  at = body.writeInt32BE(1, at) // topics
  at += name.copy(body, at)
  at = body.writeInt32BE(places.length, at)
  for (const { partition, offset, maxBytes } of places) {
    at = body.writeInt32BE(partition, at)
    at = body.writeInt32BE(noEpoch, at) // of the leader
    at = body.writeBigInt64BE(BigInt(offset), at)
    at = body.writeBigInt64BE(-1n, at) // where the log starts, which only replicas say
    at = body.writeInt32BE(maxBytes, at)
  }
  at = body.writeInt32BE(0, at) // topics of the session that are not to be read any more
  at = body.writeInt16BE(0, at) // no rack
  return body.subarray(0, at)
}

interface DecodedFetch {
  clientSideThrottleTime: number
  errorCode: number
  responses: {
    partitions: { partition: number; errorCode: number; highWatermark: string; messages: unknown }[]
  }[]
}

function decodeFetchAnswer(payload: Buffer): FetchAnswer {
  const { clientSideThrottleTime, errorCode, responses } = decodeFetch(payload) as DecodedFetch
  const parts = responses.flatMap(({ partitions }) =>
    partitions.map(({ partition, errorCode: code, highWatermark, messages }) => {
      const records = messages as Undecoded
      return {
        ...{ partition, errorCode: code, end: Number(highWatermark), records },
        stableOffset: records.stableOffset,
      }
    }),
  )
  return { errorCode, parts, throttleMs: clientSideThrottleTime }
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

function encodeListOffsets(questions: readonly OffsetQuestion[]): Buffer {
  const byTopic = [...Map.groupBy(questions, ({ topic }) => topic)]
  return Buffer.concat([
    int32(noReplica),
    Buffer.from([readCommitted]),
    int32(byTopic.length),
    ...byTopic.flatMap(([topic, its]) => [
      text(topic),
      int32(its.length),
      ...its.map(({ partition, at }) => {
        const asked = Buffer.alloc(12)
        asked.writeInt32BE(partition, 0)
        asked.writeBigInt64BE(BigInt(at), 4)
        return asked
      }),
    ]),
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
