import type { Delivery, Origin } from '../../core/delivery/delivery.ts'
import { isTraceparent } from '../../core/delivery/trace-context.ts'
import type { ReleaseReason } from '../../core/ordering/strict-terms.ts'
import { OffsetTracker, noWork, ReadPosition, type Ownership } from '../../core/offsets/offset-tracker.ts'
import { PartitionLedger } from '../commit/partition-ledger.ts'
import type { FetchedBatch, FetchedRecord, FetchedRecords } from './record-source.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'

/**
 * Why a partition's head cannot be taken now. What blocks it also wakes it: the endpoint when it has room, the
 * promise when it settles, the clock, the dispatcher when fewer deliveries are in flight, or the next turn of the
 * event loop.
 */
export type Block =
  | { kind: 'endpoint'; endpoint: EndpointQueue }
  | { kind: 'pending'; settled: Promise<void> }
  | { kind: 'until'; at: number }
  | { kind: 'full' }
  | { kind: 'turn' }

/** What a partition needs of the group member that owns it. */
export interface PartitionOwner {
  /** `<member id>/<epoch>` at present. */
  readonly owner: string
  isFresh(): boolean
  /** Requests may be sent. */
  mayStart(): boolean
  /** A record of the partition was finished. */
  finished(partition: AssignedPartition): void
  /** Its head is due in that many ms. Reported again now and then. */
  waits(partition: AssignedPartition, ms: number): void
}

/**
 * An owned partition: the records fetched and not taken yet, and which offsets are finished. It lives from
 * the assignment to the loss of the partition; whatever still belongs to it then is dropped unsent or ends
 * uncommitted. `reading` is its state (a table of transitions); beside that it may be paused, and its head blocked.
 */
export class AssignedPartition {
  readonly topic: string
  readonly partition: number
  readonly owner: PartitionOwner
  /** Epoch ms. */
  readonly assignedAt = Date.now()
  readonly tracker = new OffsetTracker()
  /** Its owner is the one at the assignment, and stays so through rebalances that the partition stays in. */
  readonly ledger: PartitionLedger
  /** Nothing is taken before the committed offsets have been read. */
  readonly reading = new ReadPosition()
  /** At Kafka: nothing more of it is fetched. */
  paused = false
  /** When the newest records arrived, by the steady clock. */
  fetchedAt = 0
  /** Set while the head waits for something. */
  block: Block | null = null
  blockedTimer: NodeJS.Timeout | null = null
  /** Queued at the scheduler. */
  queued = false
  /** The head, decoded and planned, kept while it waits; only its planner knows its shape. */
  head: unknown = null
  /** The tracker's change count at the last commit. */
  committedChanges = 0
  committedPosition: number | null = null

  #batches: BufferedBatch[] = []
  #buffered = 0
  #bytes = 0
  /** The head, once it was read. */
  #first: FetchedRecord | null = null
  #work: RecordProgress | null = null

  constructor(topic: string, partition: number, owner: PartitionOwner) {
    this.topic = topic
    this.partition = partition
    this.owner = owner
    this.ledger = new PartitionLedger(owner.owner)
  }

  /** False once it is lost, for good. */
  get alive(): boolean {
    return !this.reading.isLost
  }

  /** Records fetched and not taken. */
  get buffered(): number {
    return this.#buffered
  }

  /** Bytes that they take. */
  get bufferedBytes(): number {
    return this.#bytes
  }

  /**
   * Whether it is still owned: `uncertain` while the last heartbeat is too old to know, for instance after this
   * process was frozen.
   */
  get ownership(): Ownership {
    if (!this.alive) return 'lost'
    return this.owner.isFresh() ? 'owned' : 'uncertain'
  }

  push({ records }: FetchedBatch): void {
    const batch: BufferedBatch = { records, places: [], sequences: [], next: 0 }
    for (let index = 0; index < records.length; index++) {
      const sequence = this.tracker.add(records.offsetAt(index))
      if (sequence === noWork) continue
      batch.places.push(index)
      batch.sequences.push(sequence)
    }
    if (batch.places.length === 0) return
    this.#batches.push(batch)
    this.#buffered += batch.places.length
    this.#bytes += records.bytes
  }

  peek(): FetchedRecord | null {
    this.#first ??= this.peekAhead(0)
    return this.#first
  }

  /** The record `ahead` places behind the head; null beyond what is buffered. */
  peekAhead(ahead: number): FetchedRecord | null {
    let left = ahead
    for (const { records, places, next } of this.#batches) {
      if (next + left < places.length) return records.at(places[next + left]!)
      left -= places.length - next
    }
    return null
  }

  /** When the broker appended the head, epoch ms; null where nothing waits, or the broker does not say. */
  get waitingSince(): number | null {
    return this.peekAhead(0)?.timestamp ?? null
  }

  /** The work that the head is, before it is taken and from then on; call it only after `peek` gave one. */
  get work(): RecordProgress {
    const { sequences, next } = this.#batches[0]!
    return (this.#work ??= new RecordProgress(this, sequences[next]!, this.peek()!))
  }

  /** Takes the head; call it only after `peek` gave one. */
  next(): RecordProgress {
    const { work } = this
    const batch = this.#batches[0]!
    batch.next++
    this.#buffered--
    if (batch.next === batch.places.length) {
      this.#batches.shift()
      this.#bytes -= batch.records.bytes
    }
    this.#first = null
    this.#work = null
    this.head = null
    return work
  }

  /** The partition is lost: nothing of it is sent or finished any more. */
  drop(): void {
    this.reading.lost()
    this.#batches = []
    this.#buffered = 0
    this.#bytes = 0
    this.#first = null
    this.#work = null
    this.head = null
    if (this.blockedTimer) clearTimeout(this.blockedTimer)
    this.blockedTimer = null
    if (this.block?.kind === 'endpoint') this.block.endpoint.waiters.delete(this)
    this.block = null
  }
}

/** The records of one fetch that are still to be processed. */
interface BufferedBatch {
  records: FetchedRecords
  /** Which of them are, and their sequence numbers in the tracker. */
  places: number[]
  sequences: number[]
  /** The first one that was not taken. */
  next: number
}

/** What a delivery is made of, and where its result goes: a record that was taken, or one call of a run. */
export interface Work {
  readonly partition: AssignedPartition
  /** Of the record. */
  readonly offset: number
  /** The W3C trace that the producer of the call, or of the record, named in its headers. */
  readonly traceparent: string | null
  /** When the broker appended the record, epoch milliseconds; null when it does not say. */
  readonly appendedAt: number | null
  /** The record's topic, partition and offset. */
  readonly place: Origin
  /** The owner that its results are recorded under. */
  readonly owner: string
  /** The record is a run: the delivery can be put off again without a copy of it. */
  readonly isOfRun: boolean
  /** Set where the delivery keeps its place among its user's calls from round to round. */
  readonly parked: ParkedWork | null
  /** An attempt that did not get the delivery delivered has ended like that (see ResultCodes). */
  attemptEnded(result: number): void
  /** The delivery has this result (see ResultCodes). Everything published for it must be with the broker. */
  finishOne(result: number): void
}

/** A delivery that is tried again where it is, before any other of its user. */
export interface ParkedWork {
  /** Its round is over, and the next one is to begin at `at` (epoch ms). Not null: it goes to a tier instead, for that reason. */
  again(delivery: Delivery, at: number): ReleaseReason | null
}

/** A record that was taken: finished once all its deliveries are. */
export class RecordProgress implements Work {
  readonly partition: AssignedPartition
  readonly sequence: number
  readonly offset: number
  /** The W3C trace that the record's producer named in its headers. */
  readonly traceparent: string | null
  /** When the broker appended the record, epoch milliseconds; null when it does not say. */
  readonly appendedAt: number | null
  /** As of the record. */
  readonly isStampedByBroker: boolean
  readonly isOfRun = false
  /** Deliveries that are not finished yet. */
  remaining = 1

  constructor(partition: AssignedPartition, sequence: number, record: FetchedRecord) {
    this.partition = partition
    this.sequence = sequence
    this.offset = record.offset
    this.traceparent = traceparentOf(record)
    this.appendedAt = record.timestamp
    this.isStampedByBroker = record.isStampedByBroker
  }

  get parked(): null {
    return null
  }

  /** Its topic, partition and offset. */
  get place(): Origin {
    const { topic, partition } = this.partition
    return { topic, partition, offset: this.offset, appendedAt: this.appendedAt }
  }

  /** The owner that its results are recorded under. */
  get owner(): string {
    return this.partition.ledger.owner
  }

  /** Of a run: one of its calls, by the call's own record; null where that is gone. */
  member(call: Pick<FetchedRecord, 'header'> | null): RunMember {
    return new RunMember(this, call && traceparentOf(call))
  }

  /** An attempt of one of its deliveries that did not get it delivered has ended like that (see ResultCodes). */
  attemptEnded(result: number): void {
    this.partition.ledger.addAttempt(this.offset, result, this.remaining === 0)
  }

  /** One of its deliveries has this result (see ResultCodes). Everything published for it must be with the broker. */
  finishOne(result: number): void {
    this.partition.ledger.results.add(this.offset, result, this.remaining === 1)
    if (--this.remaining > 0) return
    // For a lost partition too: nothing of it is committed now, but the result counts if it is assigned to us again.
    this.partition.tracker.finish(this.sequence)
    if (this.partition.alive) this.partition.owner.finished(this.partition)
  }
}

function traceparentOf(record: Pick<FetchedRecord, 'header'>): string | null {
  const text = record.header('traceparent')?.toString('latin1')
  return text !== undefined && isTraceparent(text) ? text : null
}

/** One call of a run: its results are recorded for the run's record, which is finished once all of them are. */
class RunMember implements Work {
  readonly isOfRun = true
  readonly traceparent: string | null
  readonly #run: RecordProgress

  constructor(run: RecordProgress, traceparent: string | null) {
    this.#run = run
    this.traceparent = traceparent
  }

  get partition(): AssignedPartition {
    return this.#run.partition
  }

  get parked(): null {
    return null
  }

  get offset(): number {
    return this.#run.offset
  }

  get appendedAt(): number | null {
    return this.#run.appendedAt
  }

  get place(): Origin {
    return this.#run.place
  }

  get owner(): string {
    return this.#run.owner
  }

  attemptEnded(result: number): void {
    this.#run.attemptEnded(result)
  }

  finishOne(result: number): void {
    this.#run.finishOne(result)
  }
}

/** The record of an own partition that is next, and waits to be taken. */
export interface WaitingRecord {
  topic: string
  partition: number
  /** Of a tier. */
  isRetry: boolean
  /** For how long Kafka has had it, in ms; 0 where nothing waits. */
  ageMs: number
  /** For how long it has been due, in ms; 0 before. A call is due at once. */
  overdueMs: number
}

/**
 * What waits at the head of each partition. Records that were taken are not among them: they are in flight for seconds
 * at most, unless Kafka is away.
 * @param tierDelayMs the delay of the tier that a topic stands for; null for calls
 * @param now epoch ms
 */
export function* waitingRecords(
  partitions: Iterable<Pick<AssignedPartition, 'topic' | 'partition' | 'waitingSince'>>,
  tierDelayMs: ((topic: string) => number) | null,
  now: number,
): Iterable<WaitingRecord> {
  for (const { topic, partition, waitingSince } of partitions) {
    const ageMs = waitingSince === null ? 0 : Math.max(0, now - waitingSince)
    const overdueMs = Math.max(0, ageMs - (tierDelayMs?.(topic) ?? 0))
    yield { topic, partition, isRetry: tierDelayMs !== null, ageMs, overdueMs }
  }
}
