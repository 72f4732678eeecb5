import type { Delivery } from '../core/delivery.ts'
import type { Tier, TopicNames } from '../core/topics.ts'
import { RoomClaim } from './claim.ts'
import { headersOf, letterOf, type DeadLetters } from './dead-letters.ts'
import type { HandOver, Outgoing } from './hand-over.ts'
import type { LedgerRecord } from './ledger-record.ts'
import type { Ledger } from './ledger.ts'
import type { RecordWork } from './partition-work.ts'
import type { DestinationMetrics, EncodedRecord, Encoders, ForwarderMetrics } from './ports.ts'
import type { Room } from './room.ts'

export interface RetryRecordsParts {
  topics: TopicNames
  encoders: Encoders
  handOver: HandOver
  ledger: Ledger
  room: Room
  metrics: ForwarderMetrics
}

/** Hands deliveries over to the tiers. */
export class RetryRecords {
  readonly #parts: RetryRecordsParts
  readonly #letters: DeadLetters

  constructor(parts: RetryRecordsParts, letters: DeadLetters) {
    this.#parts = parts
    this.#letters = letters
  }

  /**
   * Into a tier. What waits until the broker has it should be little, for it outlives the young objects: what is to be
   * told then is encoded beforehand, and nothing of the run or the delivery is held.
   * @param key one character a byte
   * @param counted where the disposition is counted; null for a hop, which follows one that was
   */
  write(
    work: RecordWork,
    key: string | null,
    tier: Tier,
    delivery: Delivery,
    now: number,
    label: 'deferred' | 'retried',
    counted: DestinationMetrics | null,
  ): void {
    const { encoders, handOver, ledger, topics } = this.#parts
    const { destinationId, body, origin, notBefore } = delivery
    const bytes = key === null ? null : Buffer.from(key, 'latin1')
    const record = { ...delivery, key: bytes, handedOverAt: now, owner: work.owner, from: work.place }
    const encoded = encoders.retry(tier.name, record, headersOf(work, origin))
    const moved = ledger.prepareMove(work, delivery, label, {
      tier: tier.name,
      dueAt: now + tier.delayMs,
      notBefore,
    })
    handOver.append(
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

  handedOver({ work, tierName, label, result, bytes, moved, counted }: WaitingRetry): void {
    const { ledger, metrics, room } = this.#parts
    metrics.retryScheduled(tierName)
    counted?.disposition(label)
    ledger.tell(moved)
    room.free(bytes)
    work.finishOne(result)
  }

  dropped({ bytes }: WaitingRetry): void {
    this.#parts.room.free(bytes)
  }

  /** The tier's topic takes no record as large as this one. */
  refused(waiting: WaitingRetry): void {
    const { work, tierName, bytes } = waiting
    const { encoders, ledger, metrics, room } = this.#parts
    const reason = 'too_large'
    const { key, ...delivery } = encoders.retryOf(tierName, waiting)
    const { destinationId, handedOverAt } = delivery
    const done = () => {
      const destination = metrics.destination(destinationId)
      destination.deadLetter(reason)
      destination.disposition('dead_lettered')
      ledger.moved(work, delivery, 'dead_lettered', { reason })
      room.free(bytes)
      work.finishOne(ledger.codes.code(destinationId, 'dead_lettered'))
    }
    const detail = 'the delivery is larger than a retry topic takes'
    const claim = new RoomClaim(work.partition, room, bytes)
    this.#letters.write(work, letterOf(work, key, reason, detail, delivery, handedOverAt), done, claim)
  }
}

/** What is kept of a delivery while its record is on the way into a tier. */
class WaitingRetry implements Outgoing {
  readonly block: Buffer
  readonly start: number
  readonly end: number
  readonly work: RecordWork
  readonly tierName: string
  readonly label: 'deferred' | 'retried'
  /** See ResultCodes. */
  readonly result: number
  /** Of room, held until then. */
  readonly bytes: number
  readonly moved: LedgerRecord
  readonly counted: DestinationMetrics | null
  readonly #records: RetryRecords

  constructor(
    records: RetryRecords,
    work: RecordWork,
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

  get standing(): Outgoing['standing'] {
    return this.work.partition.standing
  }

  done(): void {
    this.#records.handedOver(this)
  }

  tooLarge(): void {
    this.#records.refused(this)
  }

  dropped(): void {
    this.#records.dropped(this)
  }
}
