import { WireReader } from './kafka-wire.ts'
import { RecordBatches } from './record-batches.ts'

/** Decodes the records of a partition that are not plain, whose size stands at `offset`. */
export type DecodeMessages = (buffer: Buffer, offset: number) => Promise<unknown[]>

/** Stands where kafkajs expects messages, until their batch is made. */
export class Undecoded extends Array<never> {
  readonly batches: RecordBatches

  constructor(batches: RecordBatches) {
    super()
    this.batches = batches
  }

  /** What is made of it by kafkajs's filters is plain. */
  static override get [Symbol.species](): ArrayConstructor {
    return Array
  }
}

/** One partition's part of an answer, as kafkajs has it. */
interface Part {
  partition: number
  errorCode: number
  highWatermark: string
  lastStableOffset: string
  lastStartOffset: string
  abortedTransactions: { producerId: string; firstOffset: string }[]
  preferredReadReplica: number
  messages: unknown[]
}

/**
 * Answers to Fetch, version 11, which every broker since Kafka 2.3 speaks with kafkajs 2.2.4. Read in one go except for
 * records that are not plain (compressed, of a transaction): `decodeOthers` decodes them, and its promise is awaited.
 */
export async function decodeFetch(data: Buffer, decodeOthers: DecodeMessages): Promise<object> {
  const answer = new Answer(data, decodeOthers)
  const clientSideThrottleTime = answer.int32()
  const errorCode = answer.int16()
  const sessionId = answer.int32()
  const responses = answer.list(() => ({
    topicName: answer.text(),
    partitions: answer.list(() => answer.part()),
  }))
  if (answer.pending.length > 0) await Promise.all(answer.pending)
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses }
}

/** Throws a RangeError where an answer ends too early. */
class Answer extends WireReader {
  /** Records that are still being decoded. */
  readonly pending: Promise<void>[] = []
  readonly #decodeOthers: DecodeMessages

  constructor(payload: Buffer, decodeOthers: DecodeMessages) {
    super(payload)
    this.#decodeOthers = decodeOthers
  }

  /** In digits, as kafkajs wants them. */
  int64(): string {
    const high = this.int32()
    this.at += 4
    const value = high * 2 ** 32 + this.payload.readUInt32BE(this.at - 4)
    return Number.isSafeInteger(value) ? String(value) : String(this.payload.readBigInt64BE(this.at - 8))
  }

  part(): Part {
    const part: Part = {
      partition: this.int32(),
      errorCode: this.int16(),
      highWatermark: this.int64(),
      lastStableOffset: this.int64(),
      lastStartOffset: this.int64(),
      abortedTransactions: this.list(() => ({ producerId: this.int64(), firstOffset: this.int64() })),
      preferredReadReplica: this.int32(),
      messages: [],
    }
    const start = this.at
    const length = this.int32()
    if (length <= 0 || this.at + length > this.payload.length) return part
    const batches = RecordBatches.read(this.payload.subarray(this.at, this.at + length))
    this.at += length
    if (batches) part.messages = new Undecoded(batches)
    else {
      const decoding = this.#decodeOthers(this.payload, start).then(
        (messages) => void (part.messages = messages),
      )
      // Nothing waits for it when the rest of the answer is cut off.
      decoding.catch(() => {})
      this.pending.push(decoding)
    }
    return part
  }
}
