import { usersOf } from '../../core/call/analytics-call.ts'
import { checkCall } from '../../core/call/check-call.ts'
import {
  deliveryIdIn,
  deliveryIn,
  offsetsOf,
  type DeferredRun,
  type OfCall,
} from '../../core/delivery/deferred-run.ts'
import type { RetryDelivery } from '../../core/delivery/delivery.ts'
import { Unrenderable } from '../../core/shape/text-template.ts'
import type { AssignedPartition, Block, RecordProgress, Work } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import type { DestinationRuntime } from './destination-runtime.ts'
import { keyOf, Refusal, requireReadable, type RecordDecoder } from './planner.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { SchemaLoader } from './schema-loader.ts'

/** Reads calls again: those at these offsets (ascending), as far as they are there. Waits while Kafka is away. */
export type ReadCalls = (partition: number, offsets: readonly number[]) => Promise<readonly FetchedRecord[]>

/** Calls that are asked for at once: a run of large ones must not fill the memory. */
const readAtOnce = 128
/** The clocks of brokers differ by less, in ms: what was put off must never be taken for gone. */
const brokerSkewMs = 60_000

const unknownCall: OfCall = {
  ...{ messageId: '', sourceId: '', userIds: [], type: 'track' },
  ...{ body: new Uint8Array(0), filled: null, appendedAt: null },
}

/** A call of a run as a delivery that came due. */
export interface DueMember {
  retry: RetryDelivery
  /** The call's Kafka key, one character a byte. */
  key: string | null
  /** Why no request can be made of it; null where one can. */
  unrenderable: Unrenderable | null
}

/** A run at the head of its partition, and how far it was taken. */
export class DueRun {
  readonly run: DeferredRun
  readonly work: RecordProgress
  readonly #offsets: readonly number[]
  readonly #read: ReadCalls
  readonly #records = new Map<number, FetchedRecord>()
  /** Up to here, by place in the run, records were asked for. */
  #asked = 0
  #taken = 0
  /** When the first call was taken, by the steady clock; null before. */
  #begunAt: number | null = null
  #reading: Promise<void> | null = null
  #member: DueMember | null = null

  constructor(run: DeferredRun, work: RecordProgress, read: ReadCalls) {
    this.run = run
    this.work = work
    this.#read = read
    this.#offsets = [...offsetsOf(run.calls)]
    work.remaining = this.#offsets.length
  }

  /** Offsets of the calls that were not taken. */
  get rest(): readonly number[] {
    return this.#offsets.slice(this.#taken)
  }

  get left(): number {
    return this.#offsets.length - this.#taken
  }

  /** Nothing of it was taken. */
  get isWhole(): boolean {
    return this.#taken === 0
  }

  /** For how long the first call was taken, in ms. */
  openMs(now: number): number {
    return this.#begunAt === null ? 0 : now - this.#begunAt
  }

  /** Where the next call lies. */
  get #next(): number {
    return this.#offsets[this.#taken]!
  }

  /**
   * The next call's record; null where it is gone. A block: it is not read yet.
   */
  peek(): FetchedRecord | null | Block {
    if (this.#taken >= this.#asked && this.#reading === null) this.#reading = this.#readOn()
    if (this.#reading !== null) return { kind: 'pending', settled: this.#reading }
    return this.#records.get(this.#next) ?? null
  }

  /** The next call as a delivery, made once while it waits. Throws what makes it a dead letter. */
  member(
    record: FetchedRecord,
    destination: DestinationRuntime,
    decoder: RecordDecoder<AnalyticsCall>,
    schemas: SchemaLoader,
    partition: AssignedPartition,
  ): DueMember | Block {
    if (this.#member) return this.#member
    requireReadable(record)
    const decoded = decoder.tryDecode(record.value)
    if (decoded === undefined) return schemas.load(decoder, partition, record)
    const { call, fault } = checkCall(decoded)
    if (fault !== null) throw new Refusal('invalid_call', fault)
    const made = destination.render(call, deliveryIdIn(this.run, call.messageId), this.run.urlId)
    const unrenderable = made instanceof Unrenderable ? made : null
    const { body, filled } = made instanceof Unrenderable ? unknownCall : made
    const retry = deliveryIn(this.run, record.offset, this.work.place, {
      messageId: call.messageId,
      sourceId: call.sourceId,
      userIds: usersOf(call),
      type: call.type as Exclude<typeof call.type, 'unknown'>,
      body,
      filled,
      appendedAt: record.timestamp,
    })
    return (this.#member = { retry, key: keyOf(record.key), unrenderable })
  }

  /** A call that is gone, as far as it is known. */
  lost(): RetryDelivery {
    return deliveryIn(this.run, this.#next, this.work.place, unknownCall)
  }

  /** Takes the next call; with the last one the run is taken. */
  take(partition: AssignedPartition, now: number): Work {
    this.#begunAt ??= now
    const member = this.work.member(this.#records.get(this.#next) ?? null)
    this.#records.delete(this.#next)
    this.#member = null
    this.#taken++
    if (this.left === 0) partition.next()
    return member
  }

  async #readOn(): Promise<void> {
    const wanted = this.#offsets.slice(this.#asked, this.#asked + readAtOnce)
    for (const record of await this.#read(this.run.calls.partition, wanted))
      if (!this.#isAnother(record)) this.#records.set(record.offset, record)
    this.#asked += wanted.length
    this.#reading = null
  }

  /**
   * It was appended after the run, which cannot mean it: the log was cut off, or the topic made again, and it has the number
   * of a call that is gone. Only brokers' times say so: a producer's clock may be ahead.
   */
  #isAnother({ timestamp, isStampedByBroker }: FetchedRecord): boolean {
    const { work } = this
    if (timestamp === null || work.appendedAt === null) return false
    return isStampedByBroker && work.isStampedByBroker && timestamp > work.appendedAt + brokerSkewMs
  }
}
