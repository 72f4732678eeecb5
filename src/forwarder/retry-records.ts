import type { Delivery } from '../core/delivery.ts'
import type { Tier, TopicNames } from '../core/topics.ts'
import { RoomClaim, type Claim } from './claim.ts'
import { headersOf, letterOf, type DeadLetters } from './dead-letters.ts'
import type { HandOver } from './hand-over.ts'
import type { Ledger, PreparedEvent } from './ledger.ts'
import type { RecordWork } from './partition-work.ts'
import type { DestinationMetrics, Encoders, ForwarderMetrics } from './ports.ts'
import type { Room } from './room.ts'

export interface RetryRecordsParts {
  topics: TopicNames
  encoders: Encoders
  handOver: HandOver
  ledger: Ledger
  room: Room
  metrics: ForwarderMetrics
}

/** What is kept of a delivery while its record is on the way into a tier. */
interface WaitingRetry {
  work: RecordWork
  tierName: string
  label: 'deferred' | 'retried'
  destinationId: string
  /** Of room, held until then. */
  bytes: number
  moved: PreparedEvent
  counted: DestinationMetrics | null
  claim: Claim
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
   * @param counted where the disposition is counted; null for a hop, which follows one that was
   */
  write(
    work: RecordWork,
    key: Buffer | null,
    tier: Tier,
    delivery: Delivery,
    now: number,
    label: 'deferred' | 'retried',
    counted: DestinationMetrics | null,
  ): void {
    const { encoders, handOver, ledger, topics } = this.#parts
    const { destinationId, notBefore } = delivery
    const bytes = delivery.body.length
    const record = { ...delivery, key, handedOverAt: now, owner: work.owner, from: work.place }
    const value = encoders.retry(tier.name, record)
    const moved = ledger.prepareMove(work, delivery, label, {
      tier: tier.name,
      dueAt: now + tier.delayMs,
      notBefore,
    })
    const claim = new RoomClaim(work.partition, this.#parts.room, bytes)
    const headers = headersOf(work, delivery.origin)
    const waiting = { work, tierName: tier.name, label, destinationId, bytes, moved, counted, claim }
    handOver.append(
      topics.retry(tier.name),
      { key, value, headers },
      () => this.#handedOver(waiting),
      () => this.#refused(waiting, key, value, now),
      claim,
    )
  }

  #handedOver({ work, tierName, label, destinationId, bytes, moved, counted }: WaitingRetry): void {
    const { ledger, metrics, room } = this.#parts
    metrics.retryScheduled(tierName)
    counted?.disposition(label)
    ledger.tell(moved)
    room.free(bytes)
    work.finishOne(ledger.codes.code(destinationId, label))
  }

  /** The tier's topic takes no record as large as this one. */
  #refused(
    { work, tierName, destinationId, bytes, claim }: WaitingRetry,
    key: Buffer | null,
    value: Buffer,
    now: number,
  ): void {
    const { encoders, ledger, metrics, room } = this.#parts
    const reason = 'too_large'
    const delivery = encoders.retryOf(tierName, value)
    const done = () => {
      const destination = metrics.destination(destinationId)
      destination.deadLetter(reason)
      destination.disposition('dead_lettered')
      ledger.moved(work, delivery, 'dead_lettered', { reason })
      room.free(bytes)
      work.finishOne(ledger.codes.code(destinationId, 'dead_lettered'))
    }
    const detail = 'the delivery is larger than a retry topic takes'
    this.#letters.write(work, letterOf(work, key, reason, detail, delivery, now), done, claim)
  }
}
