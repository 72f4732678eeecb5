import type { AnalyticsCall } from '../core/analytics-call.ts'
import { deliveryEvent } from '../core/delivery-event.ts'
import type {
  DeliveryEvent,
  DeliveryEventType,
  DispositionLabel,
  PlannedDestination,
} from '../core/delivery-event.ts'
import type { Delivery } from '../core/delivery.ts'
import type { Outcome } from '../core/outcome.ts'
import { ResultCodes } from '../core/result-log.ts'
import type { TallySink } from './committer.ts'
import type { Attempt, DeliveryRun } from './delivery-run.ts'
import { unclaimed } from './claim.ts'
import type { HandOver } from './hand-over.ts'
import { LedgerRecord } from './ledger-record.ts'
import type { RecordWork } from './partition-work.ts'
import type { Encoders, PartitionTally, TopicPartition } from './ports.ts'
import type { Room } from './room.ts'
import { steadyClock } from './steady-clock.ts'

export interface LedgerParts {
  topic: string
  /** Plain first-time deliveries too (LEDGER=all). */
  everything: boolean
  encoders: Encoders
  handOver: HandOver
  room: Room
  log: { error(fields: object, message: string): void }
}

/** What a disposition says beside its name. */
export interface DispositionDetails {
  /** A dead letter's reason, or why it was skipped. */
  reason?: string
  tier?: string
  dueAt?: number
  notBefore?: number | null
}

/** A tally that waits for so long is a ledger that cannot be written, in ms. */
const slowMs = 5_000

/**
 * Writes `webhooks.deliveries`. All goes through one queue: whatever was told before a tally was cut is with the broker
 * before that tally is, hence before the commit that the tally tells of.
 */
export class Ledger implements TallySink {
  readonly codes = new ResultCodes()
  readonly everything: boolean
  readonly #parts: LedgerParts
  /** When the tallies that wait were given, by the steady clock. */
  readonly #waiting = new Set<number>()

  constructor(parts: LedgerParts) {
    this.#parts = parts
    this.everything = parts.everything
  }

  /** Null unless tallies wait, and commits with them. */
  problem(now: number): string | null {
    for (const since of this.#waiting) if (now - since > slowMs) return 'the ledger cannot be written'
    return null
  }

  /** @param plan every destination of the call's source */
  planned(work: RecordWork, call: AnalyticsCall, plan: PlannedDestination[]): void {
    this.#tell('planned', work, {
      messageId: call.messageId,
      sourceId: call.sourceId,
      callType: call.type === 'unknown' ? null : call.type,
      receivedAt: call.receivedAt,
      plan,
    })
  }

  attempted({ run, endpoint }: Attempt, outcome: Outcome): void {
    const failed = outcome.kind !== 'success'
    if (!failed && !this.everything) return
    this.#tell(failed ? 'attempt_failed' : 'attempt_succeeded', run.work, {
      ...ofRun(run),
      urlId: endpoint.id,
      attempt: run.attempts,
      reason: outcome.kind,
      status: outcome.status,
      durationMs: outcome.durationMs,
      detail: outcome.detail,
    })
  }

  /** Of deletes always; of other calls not that all went well at the first attempt, unless everything is told. */
  disposed(run: DeliveryRun, disposition: DispositionLabel, details: DispositionDetails = {}): void {
    const plain =
      run.outcomes === null && !run.isRetry && (disposition === 'delivered' || disposition === 'skipped')
    if (plain && !this.everything && run.type !== 'delete') return
    this.#tell('disposition', run.work, {
      ...ofRun(run),
      attempt: run.attempts,
      disposition,
      ...details,
    })
  }

  /** A delivery that is at hand without a run: it goes on to a tier, or ends after it waited in one. */
  moved(
    work: RecordWork,
    delivery: Delivery,
    disposition: DispositionLabel,
    details: DispositionDetails,
  ): void {
    this.tell(this.prepareMove(work, delivery, disposition, details))
  }

  /** As `moved`, to be told by `tell` once it is so: a few bytes that hold nothing else in memory. */
  prepareMove(
    work: RecordWork,
    delivery: Delivery,
    disposition: DispositionLabel,
    details: DispositionDetails,
  ): LedgerRecord {
    const { messageId, sourceId, destinationId, id, type, attempts } = delivery
    return this.#prepare('disposition', work, {
      messageId,
      sourceId,
      destinationId,
      deliveryId: id,
      callType: type,
      attempt: attempts,
      disposition,
      ...details,
    })
  }

  /** A record that nobody is to get, or that never becomes a delivery. */
  recordDisposed(
    work: RecordWork,
    disposition: DispositionLabel,
    details: { reason?: string; detail?: string },
    call: Pick<AnalyticsCall, 'messageId' | 'sourceId' | 'type'> | null,
  ): void {
    const plain = disposition === 'skipped' && call?.type !== 'delete'
    if (plain && !this.everything) return
    this.#tell('disposition', work, {
      messageId: call?.messageId ?? null,
      sourceId: call?.sourceId ?? null,
      callType: call && call.type !== 'unknown' ? call.type : null,
      disposition,
      ...details,
    })
  }

  lost({ topic, partition }: TopicPartition, first: number, last: number): void {
    const event = deliveryEvent('lost', Date.now(), {
      topic,
      partition,
      firstOffset: first,
      lastOffset: last,
      detail: `lost ${first}..${last}: retention ran past the consumer group`,
    })
    this.tell(this.#encoded(event, `${topic}/${partition}`))
  }

  async tally(tallies: readonly PartitionTally[]): Promise<void> {
    const at = Date.now()
    const since = steadyClock.now()
    this.#waiting.add(since)
    try {
      const appended = tallies.map((each) => this.#appendTally(each, at))
      // Commits wait for it.
      this.#parts.handOver.flush(this.#parts.topic)
      await Promise.all(appended)
    } finally {
      this.#waiting.delete(since)
    }
  }

  #appendTally({ topic, partition, tally }: PartitionTally, at: number): Promise<void> {
    const { encoders, handOver, topic: ledger } = this.#parts
    // One partition's tallies lie in one partition of the ledger, in their order.
    const key = `${tally.group}/${topic}/${partition}`
    const record = encoders.event(key, deliveryEvent('tally', at, { topic, partition, tally }))
    const bytes = record.end - record.start
    return new Promise((resolve, reject) => {
      const tooLarge = () =>
        reject(new Error(`${ledger} refuses a tally of ${bytes} bytes: check its max.message.bytes`))
      handOver.append(ledger, { ...record, ...unclaimed, done: resolve, tooLarge })
    })
  }

  #tell(type: DeliveryEventType, work: RecordWork, given: Partial<DeliveryEvent>): void {
    this.tell(this.#prepare(type, work, given))
  }

  #prepare(type: DeliveryEventType, work: RecordWork, given: Partial<DeliveryEvent>): LedgerRecord {
    const { topic, partition } = work.partition
    const event = deliveryEvent(type, Date.now(), given)
    event.topic = topic
    event.partition = partition
    event.firstOffset = work.offset
    event.owner = work.owner
    return this.#encoded(event, given.messageId || null)
  }

  #encoded(event: DeliveryEvent, key: string | null): LedgerRecord {
    return new LedgerRecord(this.#parts, event, this.#parts.encoders.event(key, event))
  }

  tell(record: LedgerRecord): void {
    const { topic, handOver, room } = this.#parts
    // What waits to be told takes room from what is taken up: else a slow ledger would fill the memory.
    room.hold(record.bytes)
    handOver.append(topic, record)
  }
}

const ofRun = (run: DeliveryRun): Partial<DeliveryEvent> => ({
  messageId: run.messageId,
  sourceId: run.sourceId,
  destinationId: run.destination.id,
  deliveryId: run.idempotencyKey,
  callType: run.type,
})
