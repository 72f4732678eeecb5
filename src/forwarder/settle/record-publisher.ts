import type { DeferredRun } from '../../core/delivery/deferred-run.ts'
import type { DeadLetter, RetryDelivery } from '../../core/delivery/delivery.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import type { Claim } from '../../core/offsets/offset-tracker.ts'
import { lingerMs, maxBatchBytes, maxBatchRecords } from '../../core/pacing/limits.ts'
import type { Parking } from '../send/strict-order.ts'

/**
 * A record that is being published, and what happens when that ends. Thousands wait for a quarter
 * of a second beside an endpoint that is down, and outlive the young objects: each is one object, with no closures.
 */
export interface OutgoingRecord extends EncodedRecord, Claim {
  /** Learns where it lies, before `done`. All records of a topic have one, or none. */
  readonly parking?: Parking | null
  /** The broker has it. */
  done(): void
  /** The topic takes no record as large as this one. */
  tooLarge(): void
}

interface Queue {
  /** Ownership was uncertain at their turn; they go before all that wait. */
  uncertain: OutgoingRecord[]
  waiting: OutgoingRecord[]
  /** How many of `waiting` are gone. */
  gone: number
  /** Of both lists. */
  bytes: number
  sending: boolean
  /** When the last batch began, by `performance.now()`. */
  sentAt: number
  timer: NodeJS.Timeout | null
}

/** What a record costs beside its own bytes, at most: its head, and that of a batch, which counts too (KIP-98). */
const recordOverheadBytes = 128

/**
 * Appends retry records, dead letters and the ledger's events in batches, acks=all, one batch a topic at a time: what comes
 * meanwhile makes the next one. `done` of each record is called once the broker has it.
 *
 * A record's claim is checked once more before it is written. A process that was frozen for longer than the session would otherwise
 * publish what the next owner of the partition delivers, and it would be delivered twice.
 */
export class RecordPublisher {
  readonly #sink: RecordSink
  readonly #maxRecordBytes: number
  readonly #topics = new Map<string, Queue>()
  readonly #onFailure: (error: unknown) => void
  readonly #lingerMs: number
  #open = 0
  #idle: (() => void)[] = []

  /**
   * @param maxRecordBytes what the topics take (max.message.bytes)
   * @param onFailure called when a record can be stored nowhere: the process must stop
   */
  constructor(
    sink: RecordSink,
    maxRecordBytes: number,
    onFailure: (error: unknown) => void,
    minWaitMs = lingerMs,
  ) {
    this.#sink = sink
    this.#maxRecordBytes = maxRecordBytes
    this.#onFailure = onFailure
    this.#lingerMs = minWaitMs
  }

  /** Records appended whose `done` is still to come. */
  get open(): number {
    return this.#open
  }

  append(topic: string, record: OutgoingRecord): void {
    const bytes = sizeOf(record)
    if (bytes > this.#maxRecordBytes) {
      record.tooLarge()
      return
    }
    this.#open++
    let queue = this.#topics.get(topic)
    if (!queue) {
      queue = {
        uncertain: [],
        waiting: [],
        gone: 0,
        bytes: 0,
        sending: false,
        sentAt: -Infinity,
        timer: null,
      }
      this.#topics.set(topic, queue)
    }
    queue.waiting.push(record)
    queue.bytes += bytes
    this.#schedule(topic, queue)
  }

  /** Publishes what waits for this topic as soon as possible. */
  flush(topic: string): void {
    const queue = this.#topics.get(topic)
    if (!queue) return
    queue.sentAt = -Infinity
    clearTimeout(queue.timer ?? undefined)
    queue.timer = null
    if (countOf(queue) > 0) this.#schedule(topic, queue)
  }

  /** Tries records of uncertain partitions again. To be called now and then. */
  lookAgain(): void {
    for (const [topic, queue] of this.#topics) if (countOf(queue) > 0) this.#schedule(topic, queue)
  }

  /** Resolves once all that was appended is with the broker. */
  async settled(): Promise<void> {
    if (this.#open === 0) return
    for (const topic of this.#topics.keys()) this.flush(topic)
    await new Promise<void>((resolve) => this.#idle.push(resolve))
  }

  #schedule(topic: string, queue: Queue): void {
    if (queue.sending) return
    const waitMs = this.#waitMs(queue)
    if (queue.timer !== null && waitMs > 0) return
    clearTimeout(queue.timer ?? undefined)
    queue.timer = null
    if (waitMs > 0) {
      queue.timer = setTimeout(() => {
        queue.timer = null
        this.#begin(topic, queue)
      }, waitMs)
    } else this.#begin(topic, queue)
  }

  #waitMs(queue: Queue): number {
    const isFull = countOf(queue) >= maxBatchRecords || queue.bytes >= maxBatchBytes
    return isFull ? 0 : Math.max(0, queue.sentAt + this.#lingerMs - performance.now())
  }

  #begin(topic: string, queue: Queue): void {
    queue.sending = true
    // In the same turn of the event loop more may come.
    setImmediate(() => {
      this.#drain(topic, queue).catch(this.#onFailure)
    })
  }

  async #drain(topic: string, queue: Queue): Promise<void> {
    for (let waits = false; !waits; waits = this.#waitMs(queue) > 0) {
      const batch = this.#takeBatch(queue)
      if (batch.length === 0) {
        queue.sending = false
        return
      }
      queue.sentAt = performance.now()
      await this.#send(topic, batch)
    }
    queue.sending = false
    if (countOf(queue) > 0) this.#schedule(topic, queue)
  }

  /** The first records that may be written now. Records of lost partitions are dropped. */
  #takeBatch(queue: Queue): OutgoingRecord[] {
    const again = queue.uncertain
    queue.uncertain = []
    const batch: OutgoingRecord[] = []
    let bytes = 0
    /** Adds, defers or drops `one`; false when this batch has no room for it. */
    const take = (one: OutgoingRecord): boolean => {
      const { ownership } = one
      if (ownership === 'uncertain') queue.uncertain.push(one)
      else if (ownership === 'lost') this.#drop(queue, one)
      else {
        const size = sizeOf(one)
        if (batch.length === maxBatchRecords || (batch.length > 0 && bytes + size > maxBatchBytes))
          return false
        batch.push(one)
        bytes += size
      }
      return true
    }
    let next = 0
    while (next < again.length && take(again[next]!)) next++
    if (next < again.length) queue.uncertain = queue.uncertain.concat(again.slice(next))
    else while (queue.gone < queue.waiting.length && take(queue.waiting[queue.gone]!)) queue.gone++
    queue.bytes -= bytes
    if (queue.gone === queue.waiting.length || queue.gone >= maxBatchRecords) {
      queue.waiting = queue.waiting.slice(queue.gone)
      queue.gone = 0
    }
    this.#resolveIfIdle()
    return batch
  }

  #drop(queue: Queue, one: OutgoingRecord): void {
    queue.bytes -= sizeOf(one)
    this.#open--
    one.dropped()
  }

  async #send(topic: string, batch: OutgoingRecord[]): Promise<void> {
    const refused = await this.#sink.append(topic, batch, batch[0]!.parking ? placed : undefined)
    this.#open -= batch.length
    for (const one of batch) {
      if (refused.length > 0 && refused.includes(one)) one.tooLarge()
      else one.done()
    }
    this.#resolveIfIdle()
  }

  #resolveIfIdle(): void {
    if (this.#open === 0) for (const resolve of this.#idle.splice(0)) resolve()
  }
}

const placed: Placed<OutgoingRecord> = ({ parking }, partition, offset) => parking!.placed(partition, offset)

const countOf = ({ uncertain, waiting, gone }: Queue): number => uncertain.length + waiting.length - gone

const sizeOf = ({ start, end }: EncodedRecord): number => end - start + recordOverheadBytes

/** What a record carries beside its value. */
export type Headers = Readonly<Record<string, string>>

/**
 * A record's key, value and headers in the bytes in which they go out: a part of a block of memory, which it shares with
 * others of its topic. Thousands wait for their brokers: numbers in place of views are less to keep.
 */
export interface EncodedRecord {
  readonly block: Buffer
  readonly start: number
  /** Behind the last byte. */
  readonly end: number
}

/** Encode records for publishing. Throw for values that a schema cannot hold: that is a bug. */
export interface Encoders {
  /** The Kafka key stands in the record too, for readers of other languages. */
  retry(tierName: string, record: RetryDelivery & { key: Uint8Array | null }, headers: Headers): EncodedRecord
  /** It has no key: its calls have many. */
  run(tierName: string, run: DeferredRun): EncodedRecord
  /** What `retry` encoded. */
  retryOf(tierName: string, record: EncodedRecord): RetryDelivery & { key: Uint8Array | null }
  /** Its Kafka key is the dead letter's. */
  deadLetter(record: DeadLetter, headers: Headers): EncodedRecord
  /** A record of the ledger. */
  event(key: string | null, event: DeliveryEvent): EncodedRecord
}

/** Where a record lies now; `offset` is null where the broker did not say. */
export type Placed<T extends EncodedRecord> = (record: T, partition: number, offset: number | null) => void

/** Appends records with acks=all. */
export interface RecordSink {
  /**
   * Resolves once every record is acknowledged by all in-sync replicas, but for those it resolves to: the topic takes
   * no record of their size. Tries again for ever otherwise.
   */
  append<T extends EncodedRecord>(
    topic: string,
    records: readonly T[],
    placed?: Placed<T>,
  ): Promise<readonly EncodedRecord[]>
  /** Null while records are acknowledged; otherwise what has not been for seconds, in one line for people. */
  problem(): string | null
}
