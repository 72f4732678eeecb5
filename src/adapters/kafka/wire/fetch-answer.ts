import { WireReader } from './kafka-wire.ts'
import type { AbortedTransaction } from './read-batches.ts'

/** Stands where kafkajs expects messages: the bytes of a partition's record batches, which are read later. */
export class Undecoded extends Array<never> {
  readonly bytes: Buffer
  readonly aborted: readonly AbortedTransaction[]
  /** Up to where the partition may be read; before its end while a transaction is open. -1 where it is not known. */
  readonly stableOffset: number

  constructor(bytes: Buffer, aborted: readonly AbortedTransaction[], stableOffset: number) {
    super()
    this.bytes = bytes
    this.aborted = aborted
    this.stableOffset = stableOffset
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
  abortedTransactions: AbortedTransaction[]
  preferredReadReplica: number
  messages: never[]
}

/**
 * Answers to Fetch, version 11, which every broker since Kafka 2.3 speaks with kafkajs 2.2.4. No record is looked at.
 * Throws a RangeError where an answer ends too early.
 */
export function decodeFetch(data: Buffer): object {
  const answer = new Answer(data)
  const clientSideThrottleTime = answer.int32()
  const errorCode = answer.int16()
  const sessionId = answer.int32()
  const responses = answer.list(() => ({
    topicName: answer.text(),
    partitions: answer.list(() => answer.part()),
  }))
  return { throttleTime: 0, clientSideThrottleTime, errorCode, sessionId, responses }
}

class Answer extends WireReader {
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
    const length = this.int32()
    const isThere = length > 0 && this.at + length <= this.payload.length
    const bytes = this.payload.subarray(this.at, this.at + (isThere ? length : 0))
    part.messages = new Undecoded(bytes, part.abortedTransactions, Number(part.lastStableOffset))
    this.at += bytes.length
    return part
  }
}
