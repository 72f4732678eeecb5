import type { Throttling } from '../kafkajs-internals.ts'
import { WireReader } from './kafka-wire.ts'
import type { AbortedTransaction } from './read-batches.ts'

/** One partition's part of an answer to Fetch. */
export interface FetchedPart {
  topic: string
  partition: number
  /** 0: what it holds from that offset on, which may be nothing yet. */
  errorCode: number
  /** Its end: the offset behind what all in-sync replicas have. */
  end: number
  /** Up to where it may be read: before its end while a transaction is open; -1 where that is not known. */
  stableOffset: number
  /** Of transactions that were aborted. */
  aborted: readonly AbortedTransaction[]
  /** Its record batches one after another, the last of which may be cut off: see `readBatches`. */
  bytes: Buffer
}

export interface FetchAnswer extends Throttling {
  /** 0, or why no partition was read. */
  errorCode: number
  parts: FetchedPart[]
}

/**
 * Answers to Fetch, version 11, which every broker since Kafka 2.3 gives. No record is looked at.
 * Throws a RangeError where an answer ends too early.
 */
export function decodeFetch(payload: Buffer): FetchAnswer {
  const answer = new Answer(payload)
  const throttleMs = answer.int32()
  const errorCode = answer.int16()
  answer.pass(4) // the session
  const parts: FetchedPart[] = []
  answer.list(() => {
    const topic = answer.text()!
    answer.list(() => void parts.push(answer.part(topic)))
  })
  return { throttleMs, errorCode, parts }
}

class Answer extends WireReader {
  /** Not exact beyond 2^53, which no offset gets to. */
  int64(): number {
    const high = this.int32()
    this.at += 4
    return high * 2 ** 32 + this.payload.readUInt32BE(this.at - 4)
  }

  part(topic: string): FetchedPart {
    const [partition, errorCode] = [this.int32(), this.int16()]
    const [end, stableOffset] = [this.int64(), this.int64()]
    this.pass(8) // where the log starts
    const aborted = this.list(() => ({ producerId: this.digits(), firstOffset: this.digits() }))
    this.pass(4) // the replica to be read instead
    const length = this.int32()
    const isThere = length > 0 && this.at + length <= this.payload.length
    const bytes = this.payload.subarray(this.at, this.at + (isThere ? length : 0))
    this.at += bytes.length
    return { topic, partition, errorCode, end, stableOffset, aborted, bytes }
  }

  /** Exact: a producer's id may be any number. */
  digits(): string {
    this.at += 8
    return String(this.payload.readBigInt64BE(this.at - 8))
  }
}
