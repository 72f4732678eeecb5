import type { Delivery } from '../../core/delivery/delivery.ts'
import type { ReleaseReason } from '../../core/ordering/strict-terms.ts'
import type { Tier } from '../../core/topics.ts'
import type { LedgerRecord } from '../commit/ledger.ts'
import type { Work } from '../consume/assigned-partition.ts'
import type { DestinationMetrics } from '../metrics.ts'
import type { Parking } from '../send/strict-order.ts'
import { headersOf, type DeadLetters, type SettlingParts } from './dead-letters.ts'
import type { OutgoingRecord, EncodedRecord } from './record-publisher.ts'

export interface RetryRecordsParts extends SettlingParts {
  deadLetters: DeadLetters
}

/** What a retry has to do with the order of its user's calls. */
export interface OrderOfRetry {
  parking?: Parking | null
  released?: ReleaseReason | null
}

/** Schedules retries: publishes deliveries to the tiers. */
export class RetryRecords {
  readonly #parts: RetryRecordsParts

  constructor(parts: RetryRecordsParts) {
    this.#parts = parts
  }

  /**
   * Publishes a retry to a tier. What waits for the broker should be small, because it outlives the young objects: the
   * ledger event is encoded beforehand, and nothing of the delivery is held.
   * @param key one character a byte
   * @param counted where the disposition is counted; null for a hop, which follows one that was
   * @param order why it is let go by those behind it, or that it is parked
   */
  write(
    work: Work,
    key: string | null,
    tier: Tier,
    delivery: Delivery,
    now: number,
    label: 'deferred' | 'retried',
    counted: DestinationMetrics | null,
    { parking = null, released = null }: OrderOfRetry = {},
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
      ...(released !== null && { reason: released }),
    })
    publisher.append(
      topics.retry(tier.name),
      new WaitingRetry(
        this.#parts,
        work,
        encoded,
        tier.name,
        label,
        ledger.codes.code(destinationId, label, released),
        body.length,
        moved,
        counted,
        parking,
      ),
    )
  }
}

/** What is kept of a delivery while its retry is being published. */
class WaitingRetry implements OutgoingRecord {
  readonly block: Buffer
  readonly start: number
  readonly end: number
  readonly work: Work
  readonly tierName: string
  readonly label: 'deferred' | 'retried'
  /** See ResultCodes. */
  readonly result: number
  /** Of the memory budget, held until then. */
  readonly bytes: number
  readonly moved: LedgerRecord
  readonly counted: DestinationMetrics | null
  readonly parking: Parking | null
  readonly #parts: RetryRecordsParts

  constructor(
    parts: RetryRecordsParts,
    work: Work,
    { block, start, end }: EncodedRecord,
    tierName: string,
    label: 'deferred' | 'retried',
    result: number,
    bytes: number,
    moved: LedgerRecord,
    counted: DestinationMetrics | null,
    parking: Parking | null,
  ) {
    this.#parts = parts
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
    this.parking = parking
  }

  get ownership(): OutgoingRecord['ownership'] {
    return this.work.partition.ownership
  }

  done(): void {
    const { ledger, metrics, budget } = this.#parts
    metrics.retryScheduled(this.tierName)
    this.counted?.disposition(this.label)
    ledger.append(this.moved)
    budget.free(this.bytes)
    this.work.finishOne(this.result)
  }

  dropped(): void {
    this.#parts.budget.free(this.bytes)
  }

  tooLarge(): void {
    this.parking?.closed()
    const { encoders, deadLetters } = this.#parts
    const { key, ...delivery } = encoders.retryOf(this.tierName, this)
    const detail = 'the delivery is larger than a retry topic takes'
    deadLetters.writeDelivery(this.work, key, 'too_large', detail, delivery, delivery.scheduledAt)
  }
}
