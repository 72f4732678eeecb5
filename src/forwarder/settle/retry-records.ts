import type { Delivery } from '../../core/delivery/delivery.ts'
import type { Tier, TopicNames } from '../../core/topics.ts'
import { BudgetClaim } from './budget-claim.ts'
import { headersOf, deadLetterOf, type DeadLetters } from './dead-letters.ts'
import type { RecordPublisher, OutgoingRecord } from './record-publisher.ts'
import type { LedgerRecord } from '../commit/ledger-record.ts'
import type { Ledger } from '../commit/ledger.ts'
import type { RecordProgress } from '../consume/assigned-partition.ts'
import type { DestinationMetrics, ForwarderMetrics } from '../metrics.ts'
import type { EncodedRecord, Encoders } from './record-sink.ts'
import type { MemoryBudget } from '../send/memory-budget.ts'

export interface RetryRecordsParts {
  topics: TopicNames
  encoders: Encoders
  publisher: RecordPublisher
  ledger: Ledger
  budget: MemoryBudget
  metrics: ForwarderMetrics
}

/** Hands deliveries over to the tiers. */
export class RetryRecords {
  readonly #parts: RetryRecordsParts
  readonly #deadLetters: DeadLetters

  constructor(parts: RetryRecordsParts, deadLetters: DeadLetters) {
    this.#parts = parts
    this.#deadLetters = deadLetters
  }

  /**
   * Publishes a retry to a tier. What waits for the broker should be small, because it outlives the young objects: the
   * ledger event is encoded beforehand, and nothing of the delivery is held.
   * @param key one character a byte
   * @param counted where the disposition is counted; null for a hop, which follows one that was
   */
  write(
    work: RecordProgress,
    key: string | null,
    tier: Tier,
    delivery: Delivery,
    now: number,
    label: 'deferred' | 'retried',
    counted: DestinationMetrics | null,
  ): void {
    const { encoders, publisher, ledger, topics } = this.#parts
    const { destinationId, body, origin, notBefore } = delivery
    const bytes = key === null ? null : Buffer.from(key, 'latin1')
    const record = { ...delivery, key: bytes, scheduledAt: now, owner: work.owner, from: work.place }
    const encoded = encoders.retry(tier.name, record, headersOf(work, origin))
    const moved = ledger.prepareMove(work, delivery, label, {
      tier: tier.name,
      dueAt: now + tier.delayMs,
      notBefore,
    })
    publisher.append(
      topics.retry(tier.name),
      new WaitingRetry(
        this,
        work,
        encoded,
        tier.name,
        label,
        ledger.codes.code(destinationId, label),
        body.length,
        moved,
        counted,
      ),
    )
  }

  scheduled({ work, tierName, label, result, bytes, moved, counted }: WaitingRetry): void {
    const { ledger, metrics, budget } = this.#parts
    metrics.retryScheduled(tierName)
    counted?.disposition(label)
    ledger.append(moved)
    budget.free(bytes)
    work.finishOne(result)
  }

  dropped({ bytes }: WaitingRetry): void {
    this.#parts.budget.free(bytes)
  }

  /** The tier's topic takes no record as large as this one. */
  refused(waiting: WaitingRetry): void {
    const { work, tierName, bytes } = waiting
    const { encoders, ledger, metrics, budget } = this.#parts
    const reason = 'too_large'
    const { key, ...delivery } = encoders.retryOf(tierName, waiting)
    const { destinationId, scheduledAt } = delivery
    const done = () => {
      const destination = metrics.destination(destinationId)
      destination.deadLetter(reason)
      destination.disposition('dead_lettered')
      ledger.moved(work, delivery, 'dead_lettered', { reason })
      budget.free(bytes)
      work.finishOne(ledger.codes.code(destinationId, 'dead_lettered'))
    }
    const detail = 'the delivery is larger than a retry topic takes'
    const claim = new BudgetClaim(work.partition, budget, bytes)
    this.#deadLetters.write(work, deadLetterOf(work, key, reason, detail, delivery, scheduledAt), done, claim)
  }
}

/** What is kept of a delivery while its retry is being published. */
class WaitingRetry implements OutgoingRecord {
  readonly block: Buffer
  readonly start: number
  readonly end: number
  readonly work: RecordProgress
  readonly tierName: string
  readonly label: 'deferred' | 'retried'
  /** See ResultCodes. */
  readonly result: number
  /** Of the memory budget, held until then. */
  readonly bytes: number
  readonly moved: LedgerRecord
  readonly counted: DestinationMetrics | null
  readonly #records: RetryRecords

  constructor(
    records: RetryRecords,
    work: RecordProgress,
    { block, start, end }: EncodedRecord,
    tierName: string,
    label: 'deferred' | 'retried',
    result: number,
    bytes: number,
    moved: LedgerRecord,
    counted: DestinationMetrics | null,
  ) {
    this.#records = records
    this.work = work
    this.block = block
    this.start = start
    this.end = end
    this.tierName = tierName
    this.label = label
    this.result = result
    this.bytes = bytes
    this.moved = moved
    this.counted = counted
  }

  get ownership(): OutgoingRecord['ownership'] {
    return this.work.partition.ownership
  }

  done(): void {
    this.#records.scheduled(this)
  }

  tooLarge(): void {
    this.#records.refused(this)
  }

  dropped(): void {
    this.#records.dropped(this)
  }
}
