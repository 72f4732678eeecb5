import type { StoredRecord } from '../dead-letters/dead-letters.ts'
import {
  addTotals,
  noTotals,
  type ReplayJob,
  type ReplayTotals,
  type SentKind,
} from '../../core/replay/replay-job.ts'
import { pause } from '../../retry-forever.ts'
import {
  bytesOf,
  keyOfPlace,
  type PlacedPartition,
  type ReplayedRecord,
  type ReplayLease,
  type ReplayProgress,
  type ReplayTopic,
} from './rig.ts'

const maxBatchRecords = 500
const maxBatchBytes = 512 * 1_024
/** With a rate, batches a second, so that the flow is even. */
const batchesPerSecond = 5
/** Of the replays' topic: what the forwarders have not finished yet. A pause or a cancellation leaves no more than that. */
export const maxReplayLag = 20_000
const lookAgainMs = 200
/** With a rate, what a batch may make up for: timers are late. Time in which nothing was sent is not saved up. */
const lateMs = 50
/** How often progress is noted: a crash repeats what was sent since. */
const commitEveryMs = 500

export interface OutboxParts {
  job: Pick<ReplayJob, 'rate'>
  topic: ReplayTopic
  lease: ReplayLease
  /** What the last process that ran it has noted. */
  before: readonly ReplayProgress[]
  /** Asked before each batch: waits while nothing may be sent. Throws when it is to end. */
  turn(): Promise<void>
  signal: AbortSignal
}

/** A record that is not sent yet, and where it counts. */
interface Waiting {
  record: ReplayedRecord
  kind: SentKind
  of: ReplayProgress
  isErased: () => boolean
}

/**
 * Sends a replay's records in batches, no faster than its rate and than the forwarders take them, and notes how far it
 * is once they are acknowledged.
 */
export class ReplayOutbox {
  readonly #parts: OutboxParts
  readonly #maxRecords: number
  /** Acknowledged. */
  readonly #done = new Map<string, ReplayProgress>()
  /** What was looked at and is not acknowledged yet. */
  readonly #pending = new Map<string, ReplayProgress>()
  readonly #uncommitted = new Set<string>()
  #batch: Waiting[] = []
  #bytes = 0
  /** How many more the topic takes before its lag is looked at again. */
  #room = 0
  #committedAt = performance.now()
  /** With a rate: when the next batch may be sent. */
  #dueAt = 0

  constructor(parts: OutboxParts) {
    this.#parts = parts
    const { rate } = parts.job
    this.#maxRecords = Math.max(
      1,
      Math.min(maxBatchRecords, Math.ceil((rate ?? Infinity) / batchesPerSecond)),
    )
    for (const each of parts.before) this.#done.set(keyOfPlace(each), each)
  }

  /** Where to go on; null where it has not begun. */
  positionOf(place: PlacedPartition): number | null {
    return this.#done.get(keyOfPlace(place))?.position ?? null
  }

  get totals(): ReplayTotals {
    const sum = noTotals()
    for (const { totals } of this.#done.values()) addTotals(sum, totals)
    return sum
  }

  /** Waits while nothing may be sent. Throws when it is to end. */
  turn(): Promise<void> {
    return this.#parts.turn()
  }

  /** A record was looked at; `count` says of what. */
  note(place: PlacedPartition & { offset: number }, count: keyof ReplayTotals, by = 1): void {
    const pending = this.#pendingOf(place)
    pending.totals[count] += by
    pending.position = Math.max(pending.position, place.offset + 1)
  }

  /**
   * To be sent with the next batch. The record is done once it is noted, too, behind the last of its deliveries.
   *
   * @param isErased asked when it is sent, for what nobody asks after that: a batch may wait for room for hours
   */
  add(place: PlacedPartition, kind: SentKind, record: ReplayedRecord, isErased = () => false): void {
    const of = this.#pendingOf(place)
    of.totals[kind]++
    this.#batch.push({ record, kind, of, isErased })
    this.#bytes += bytesOf(record)
  }

  /** Time for `flush`, between two records: else the last one sent would not be done, and be sent again. */
  get isFull(): boolean {
    return this.#batch.length >= this.#maxRecords || this.#bytes >= maxBatchBytes
  }

  /** Everything of the partition up to there was read. */
  reached(place: PlacedPartition, position: number): void {
    const pending = this.#pendingOf(place)
    pending.position = Math.max(pending.position, position)
  }

  /** Sends what is there; what was looked at until now is done then. */
  async flush(): Promise<void> {
    const { turn, topic } = this.#parts
    const [batch, looked] = [this.#batch, [...this.#pending.values()]]
    this.#batch = []
    this.#bytes = 0
    this.#pending.clear()
    await turn()
    if (batch.length > 0) {
      await this.#waitForRoom(batch.length)
      const [sent, erased] = divided(batch)
      countAs('erased', erased)
      this.#dueAt = this.#dueAfter(sent.length)
      const refused = await topic.append(sent.map(({ record }) => record))
      this.#room -= sent.length
      countAs(
        'refused',
        sent.filter(({ record }) => refused.includes(record)),
      )
    }
    for (const progress of looked) this.#complete(progress)
    if (performance.now() - this.#committedAt >= commitEveryMs) await this.commit()
    if (batch.length > 0) await this.#keepRate()
  }

  async commit(): Promise<void> {
    this.#committedAt = performance.now()
    this.#parts.lease.check()
    const progress = [...this.#uncommitted].map((key) => this.#done.get(key)!)
    if (progress.length > 0) await this.#parts.lease.commit(progress)
    this.#uncommitted.clear()
  }

  #pendingOf({ topic, partition }: PlacedPartition): ReplayProgress {
    const key = keyOfPlace({ topic, partition })
    let pending = this.#pending.get(key)
    if (!pending) this.#pending.set(key, (pending = { topic, partition, position: 0, totals: noTotals() }))
    return pending
  }

  #complete({ topic, partition, position, totals }: ReplayProgress): void {
    const key = keyOfPlace({ topic, partition })
    const before = this.#done.get(key)
    const sum = noTotals()
    if (before) addTotals(sum, before.totals)
    addTotals(sum, totals)
    this.#done.set(key, {
      topic,
      partition,
      position: Math.max(before?.position ?? 0, position),
      totals: sum,
    })
    this.#uncommitted.add(key)
  }

  async #waitForRoom(count: number): Promise<void> {
    const { topic, turn, signal } = this.#parts
    while (this.#room < count) {
      this.#room = maxReplayLag - (await topic.lag())
      if (this.#room >= count) return
      if (performance.now() - this.#committedAt >= commitEveryMs) await this.commit()
      await pause(lookAgainMs, signal)
      await turn()
    }
  }

  /** When the next batch may follow one that is sent now. */
  #dueAfter(records: number): number {
    const { rate } = this.#parts.job
    if (rate === null) return 0
    const now = performance.now()
    return (now - this.#dueAt < lateMs ? this.#dueAt : now) + (records / rate) * 1_000
  }

  async #keepRate(): Promise<void> {
    const { turn, signal } = this.#parts
    for (;;) {
      const dueMs = this.#dueAt - performance.now()
      if (dueMs <= 0) return
      await pause(Math.min(dueMs, 1_000), signal)
      await turn()
    }
  }
}

/** What is sent, and what is of users who were erased since it was added. */
function divided(batch: readonly Waiting[]): [sent: Waiting[], erased: Waiting[]] {
  const groups = Map.groupBy(batch, ({ isErased }) => isErased())
  return [groups.get(false) ?? [], groups.get(true) ?? []]
}

/** They counted as sent. */
function countAs(count: 'erased' | 'refused', unsent: readonly Waiting[]): void {
  for (const { kind, of } of unsent) {
    of.totals[kind]--
    of.totals[count]++
  }
}

/** As forwarders write them: where the call came from, and the trace it belongs to. */
export const headersOf = (
  record: StoredRecord,
  { topic, partition, offset }: { topic: string; partition: number; offset: number },
): Record<string, string> => ({
  'postrider-origin': `${topic}/${partition}/${offset}`,
  ...traceOf(record),
})

/** The trace alone. */
export function traceOf({ headers: { traceparent } }: StoredRecord): Record<string, string> {
  if (traceparent === undefined || Array.isArray(traceparent)) return {}
  return {
    traceparent: typeof traceparent === 'string' ? traceparent : Buffer.from(traceparent).toString(),
  }
}
