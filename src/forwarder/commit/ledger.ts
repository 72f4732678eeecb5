import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { DeferredRun } from '../../core/delivery/deferred-run.ts'
import type { Delivery } from '../../core/delivery/delivery.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import {
  deliveryEvent,
  type AttemptExchange,
  type DeliveryEvent,
  type DeliveryEventType,
  type DispositionLabel,
  type ViolationCount,
  type PlannedDestination,
} from '../../core/ledger/delivery-event.ts'
import { ResultCodes } from '../../core/ledger/result-codes.ts'
import { unclaimed } from '../../core/offsets/offset-tracker.ts'
import type { Work } from '../consume/assigned-partition.ts'
import type { TopicPartition } from '../consume/record-source.ts'
import type { Log } from '../log.ts'
import type { Attempt, ActiveDelivery } from '../send/active-delivery.ts'
import type { MemoryBudget } from '../send/memory-budget.ts'
import type { RecordPublisher, Encoders, OutgoingRecord, EncodedRecord } from '../settle/record-publisher.ts'
import { steadyClock } from '../steady-clock.ts'
import type { PartitionTally, TallySink } from './committer.ts'

export interface LedgerParts {
  topic: string
  /** Plain first-time deliveries too (LEDGER=all). */
  everything: boolean
  encoders: Encoders
  publisher: RecordPublisher
  budget: MemoryBudget
  log: Pick<Log, 'error'>
}

/** Details of a disposition. */
export interface DispositionDetails {
  /** A dead letter's reason, or why it was skipped. */
  reason?: string
  tier?: string
  dueAt?: number
  notBefore?: number | null
}

/** What names a delivery in the ledger. */
type DeliveryIds = Pick<Delivery, 'messageId' | 'sourceId' | 'destinationId' | 'id' | 'type'>

/** When a tally has waited for that many ms, the ledger counts as one that cannot be written. */
const slowMs = 5_000

/**
 * Writes `webhooks.deliveries`. All goes through one queue: whatever was recorded before a tally was made is with the broker
 * before that tally is, hence before the tally's commit.
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
  planned(work: Work, call: AnalyticsCall, plan: PlannedDestination[]): void {
    this.#record('planned', work, {
      messageId: call.messageId,
      sourceId: call.sourceId,
      callType: call.type === 'unknown' ? null : call.type,
      receivedAt: call.receivedAt,
      plan,
    })
  }

  attempted({ active, endpoint }: Attempt, outcome: Outcome): void {
    const { kind } = outcome
    const failed = kind !== 'success'
    // The success that decides is counted with the delivery.
    if ((failed || active.settled) && kind !== 'deferred')
      active.work.attemptEnded(this.codes.attempt(endpoint, kind, outcome.durationMs))
    if (!failed && !this.everything) return
    this.#record(failed ? 'attempt_failed' : 'attempt_succeeded', active.work, {
      ...ofDelivery(active.delivery),
      urlId: endpoint.id,
      attempt: active.attempts,
      reason: outcome.kind,
      status: outcome.status,
      durationMs: outcome.durationMs,
      detail: outcome.detail,
      // Of a failure it is kept with the delivery, of which deletion requests are known to take it away.
      exchange: failed ? null : exchangeIn(outcome),
    })
  }

  /** For deletes always; for other calls all but success at the first attempt and what was held, unless everything is recorded. */
  disposed(active: ActiveDelivery, disposition: DispositionLabel, details: DispositionDetails = {}): void {
    const plain =
      active.outcomes === null &&
      !active.wasScheduled &&
      (disposition === 'delivered' || disposition === 'skipped')
    // A tally names what was held.
    const isInTally = plain || disposition === 'held'
    if (isInTally && !this.everything && active.delivery.type !== 'delete') return
    this.#record('disposition', active.work, {
      ...ofDelivery(active.delivery),
      attempt: active.attempts,
      disposition,
      ...details,
    })
  }

  /** For a delivery that is not active: it hops to another tier, or ends after it waited in one. */
  moved(work: Work, delivery: Delivery, disposition: DispositionLabel, details: DispositionDetails): void {
    this.append(this.prepareMove(work, delivery, disposition, details))
  }

  /** For all that is left of a run, which ends unsent: one event, by the record that it lies in. */
  runEnded(
    work: Work,
    { destinationId, urlId }: DeferredRun,
    disposition: DispositionLabel,
    reason: string,
  ): void {
    this.#record('disposition', work, { destinationId, urlId, attempt: 0, disposition, reason })
  }

  /** For a delivery that a pause holds before it is active. A tally names it, so it is recorded as those of `disposed` are. */
  held(work: Work, delivery: DeliveryIds & Pick<Delivery, 'attempts'>, pauseId: string): void {
    if (!this.everything && delivery.type !== 'delete') return
    const { attempts: attempt } = delivery
    this.#record('disposition', work, {
      ...ofDelivery(delivery),
      attempt,
      disposition: 'held',
      reason: pauseId,
    })
  }

  /** Like `moved`, to be written by `append` later: a few bytes that hold nothing else in memory. */
  prepareMove(
    work: Work,
    delivery: Delivery,
    disposition: DispositionLabel,
    details: DispositionDetails,
  ): LedgerRecord {
    return this.#prepare('disposition', work, {
      ...ofDelivery(delivery),
      attempt: delivery.attempts,
      disposition,
      ...details,
    })
  }

  /** For a record that no destination gets, or that never becomes a delivery. */
  recordDisposed(
    work: Work,
    disposition: DispositionLabel,
    details: { reason?: string; detail?: string },
    call: Pick<AnalyticsCall, 'messageId' | 'sourceId' | 'type'> | null,
  ): void {
    const plain = disposition === 'skipped' && details.reason !== 'suppressed' && call?.type !== 'delete'
    if (plain && !this.everything) return
    this.#record('disposition', work, {
      messageId: call?.messageId ?? null,
      sourceId: call?.sourceId ?? null,
      callType: call && call.type !== 'unknown' ? call.type : null,
      disposition,
      ...details,
    })
  }

  lost({ topic, partition }: TopicPartition, first: number, last: number, why: string): void {
    const event = deliveryEvent('lost', Date.now(), {
      topic,
      partition,
      firstOffset: first,
      lastOffset: last,
      detail: `lost ${first}..${last}: ${why}`,
    })
    this.append(this.#encoded(event, `${topic}/${partition}`))
  }

  planViolations(violations: ViolationCount[]): void {
    this.append(
      this.#encoded(deliveryEvent('plan_violations', Date.now(), { violations }), 'plan_violations'),
    )
  }

  async tally(tallies: readonly PartitionTally[]): Promise<void> {
    const at = Date.now()
    const since = steadyClock.now()
    this.#waiting.add(since)
    try {
      const appended = tallies.map((each) => this.#appendTally(each, at))
      // Commits wait for it.
      this.#parts.publisher.flush(this.#parts.topic)
      await Promise.all(appended)
    } finally {
      this.#waiting.delete(since)
    }
  }

  #appendTally({ topic, partition, tally }: PartitionTally, at: number): Promise<void> {
    const { encoders, publisher, topic: ledger } = this.#parts
    // One partition's tallies lie in one partition of the ledger, in their order.
    const key = `${tally.group}/${topic}/${partition}`
    const record = encoders.event(key, deliveryEvent('tally', at, { topic, partition, tally }))
    const bytes = record.end - record.start
    return new Promise((resolve, reject) => {
      const tooLarge = () =>
        reject(new Error(`${ledger} refuses a tally of ${bytes} bytes: check its max.message.bytes`))
      publisher.append(ledger, { ...record, ...unclaimed, done: resolve, tooLarge })
    })
  }

  #record(type: DeliveryEventType, work: Work, given: Partial<DeliveryEvent>): void {
    this.append(this.#prepare(type, work, given))
  }

  #prepare(type: DeliveryEventType, work: Work, given: Partial<DeliveryEvent>): LedgerRecord {
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

  append(record: LedgerRecord): void {
    const { topic, publisher, budget } = this.#parts
    // Events that wait to be written count against the budget: a slow ledger would fill the memory otherwise.
    budget.reserveBytes(record.bytes)
    publisher.append(topic, record)
  }
}

const exchangeIn = ({ exchange, body }: Outcome): AttemptExchange | null =>
  exchange ? { ...exchange, body: body ?? new Uint8Array(0) } : null

const ofDelivery = ({
  messageId,
  sourceId,
  destinationId,
  id,
  type,
}: DeliveryIds): Partial<DeliveryEvent> => ({
  messageId,
  sourceId,
  destinationId,
  deliveryId: id,
  callType: type,
})

export interface LedgerRecordParts {
  topic: string
  budget: MemoryBudget
  log: Pick<Log, 'error'>
}

/** An encoded ledger event. No other process would write it. */
export class LedgerRecord implements OutgoingRecord {
  readonly type: DeliveryEvent['type']
  readonly messageId: string | null
  readonly block: Buffer
  readonly start: number
  readonly end: number
  readonly #parts: LedgerRecordParts

  constructor(
    parts: LedgerRecordParts,
    { type, messageId }: Pick<DeliveryEvent, 'type' | 'messageId'>,
    { block, start, end }: EncodedRecord,
  ) {
    this.#parts = parts
    this.type = type
    this.messageId = messageId
    this.block = block
    this.start = start
    this.end = end
  }

  /** Of the memory budget. */
  get bytes(): number {
    return this.end - this.start
  }

  get ownership(): 'owned' {
    return 'owned'
  }

  dropped(): void {}

  done(): void {
    this.#parts.budget.releaseBytes(this.bytes)
  }

  tooLarge(): void {
    const { topic, budget, log } = this.#parts
    const { type, messageId } = this
    budget.releaseBytes(this.bytes)
    log.error({ topic, type, messageId }, 'the ledger refuses a record')
  }
}
