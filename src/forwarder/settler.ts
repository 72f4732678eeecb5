import type { DeadLetter, DeadLetterReason, Delivery, RetryDelivery } from '../core/delivery.ts'
import { decide, type RetryPolicy } from '../core/disposition.ts'
import type { TopicNames } from '../core/topics.ts'
import { DeadLetters, headersOf } from './dead-letters.ts'
import type { DeliveryRun } from './delivery-run.ts'
import type { DestinationRuntime } from './destination-runtime.ts'
import type { HandOver } from './hand-over.ts'
import type { RecordWork } from './partition-work.ts'
import type { Room } from './room.ts'
import type { Encoders, FetchedRecord, ForwarderMetrics } from './ports.ts'

export interface SettlerParts {
  policy: RetryPolicy
  topics: TopicNames
  encoders: Encoders
  handOver: HandOver
  room: Room
  metrics: ForwarderMetrics
  log: { error(fields: object, message: string): void; warn(fields: object, message: string): void }
}

/**
 * Ends rounds: decides what becomes of a delivery, writes what must be kept, and only then finishes it at its
 * record.
 */
export class Settler {
  readonly #parts: SettlerParts
  readonly #letters: DeadLetters

  constructor(parts: SettlerParts) {
    this.#parts = parts
    this.#letters = new DeadLetters(parts.topics.deadLetters, parts.handOver, parts.encoders)
  }

  /** A round is over. The hot path is a delivery without a failed outcome. */
  settle(run: DeliveryRun): void {
    const { metrics } = run.destination
    if (run.outcomes === null || run.pending > 0) {
      metrics.disposition('delivered')
      this.#finish(run)
      return
    }
    const now = Date.now()
    const order = run.destination.endpoints.map((endpoint) => endpoint.id)
    run.outcomes.sort((a, b) => order.indexOf(a.endpointId) - order.indexOf(b.endpointId))
    const disposition = decide(
      {
        outcomes: run.outcomes,
        attempts: run.attempts,
        handOvers: run.earlier?.handOvers ?? 0,
        firstAttemptAt: run.firstAttemptAt,
        firstHandOverAt: run.earlier?.firstHandOverAt ?? null,
        now,
      },
      this.#parts.policy,
    )
    if (disposition.kind === 'delivered') {
      metrics.disposition('delivered')
      this.#finish(run)
    } else if (disposition.kind === 'retry') {
      const { tier, endpointIds, notBefore, deferred } = disposition
      const delivery = run.toDelivery(endpointIds, notBefore, now)
      const label = deferred ? 'deferred' : 'retried'
      this.#retry(run.work, run.key, tier.name, delivery, now, label, () => this.#finish(run))
    } else {
      const ids = run.outcomes.map(({ endpointId }) => endpointId)
      this.#deadDelivery(run, disposition.reason, null, run.toDelivery(ids, null, null), now)
    }
  }

  skip(run: DeliveryRun): void {
    run.destination.metrics.disposition('skipped')
    this.#finish(run)
  }

  #finish(run: DeliveryRun): void {
    this.#parts.room.free(run.body.length)
    run.work.finishOne()
  }

  /** A record with nobody to deliver it to. */
  skipRecord(work: RecordWork): void {
    this.#parts.metrics.destination('none').disposition('skipped')
    work.finishOne()
  }

  /** A call that these destinations chose not to get. */
  skipUnwanted(destinations: readonly DestinationRuntime[]): void {
    for (const { metrics } of destinations) metrics.disposition('skipped')
  }

  /** An exception tied to one delivery: it is kept with its stack, and the partition goes on. */
  fail(run: DeliveryRun, error: unknown): void {
    const detail = stackOf(error)
    this.#parts.log.error(
      { delivery: run.idempotencyKey, err: error },
      'a delivery could not be sent for a bug of ours',
    )
    const ids = run.destination.endpoints.map((endpoint) => endpoint.id)
    this.#deadDelivery(run, 'internal_error', detail, run.toDelivery(ids, null, null), Date.now())
  }

  /** A retry that came due before its `notBefore`: on to the next tier, without an attempt. */
  hop(work: RecordWork, key: string | null, tierName: string, delivery: Delivery): void {
    const now = Date.now()
    const bytes = delivery.body.length
    this.#parts.room.take(bytes)
    this.#retry(work, key, tierName, { ...delivery, handOvers: delivery.handOvers + 1 }, now, null, () => {
      this.#parts.room.free(bytes)
      work.finishOne()
    })
  }

  /** A record that never becomes a delivery: kept as it came. */
  deadRecord(work: RecordWork, record: FetchedRecord, reason: DeadLetterReason, detail: string): void {
    const { partition } = work
    const bytes = record.value?.length ?? 0
    this.#parts.room.take(bytes)
    const letter: DeadLetter = {
      reason,
      detail,
      failedAt: Date.now(),
      origin: work.place,
      owner: partition.owner.owner,
      from: work.place,
      delivery: null,
      raw: record.value,
      rawKey: record.key,
      omittedBytes: null,
      omittedSha256: null,
    }
    this.#parts.log.warn(
      { reason, detail: detail.split('\n', 1)[0], ...letter.origin },
      'a record is kept as a dead letter',
    )
    this.#letters.write(work, letter, () => {
      const metrics = this.#parts.metrics.destination('none')
      metrics.deadLetter(reason)
      metrics.disposition('dead_lettered')
      this.#parts.room.free(bytes)
      work.finishOne()
    })
  }

  #retry(
    work: RecordWork,
    key: string | null,
    tierName: string,
    delivery: Delivery,
    now: number,
    label: 'deferred' | 'retried' | null,
    finish: () => void,
  ): void {
    const record: RetryDelivery = {
      ...delivery,
      handedOverAt: now,
      owner: work.partition.owner.owner,
      from: work.place,
    }
    this.#parts.handOver.append(
      this.#parts.topics.retry(tierName),
      {
        key: keyBytes(key),
        value: this.#parts.encoders.retry(tierName, { ...record, key: keyBytes(key) }),
        headers: headersOf(work, delivery.origin),
      },
      () => {
        const { metrics } = this.#parts
        metrics.retryScheduled(tierName)
        if (label) metrics.destination(delivery.destinationId).disposition(label)
        finish()
      },
      () => {
        const letter = this.#letter(
          work,
          key,
          'too_large',
          'the delivery is larger than a retry topic takes',
          delivery,
          now,
        )
        this.#letters.write(work, letter, () => {
          this.#parts.metrics.destination(delivery.destinationId).deadLetter('too_large')
          this.#parts.metrics.destination(delivery.destinationId).disposition('dead_lettered')
          finish()
        })
      },
    )
  }

  #deadDelivery(
    run: DeliveryRun,
    reason: DeadLetterReason,
    detail: string | null,
    delivery: Delivery,
    now: number,
  ): void {
    this.#letters.write(run.work, this.#letter(run.work, run.key, reason, detail, delivery, now), () => {
      run.destination.metrics.deadLetter(reason)
      run.destination.metrics.disposition('dead_lettered')
      this.#finish(run)
    })
  }

  #letter(
    work: RecordWork,
    key: string | null,
    reason: DeadLetterReason,
    detail: string | null,
    delivery: Delivery,
    now: number,
  ): DeadLetter {
    return {
      reason,
      detail,
      failedAt: now,
      origin: delivery.origin,
      owner: work.partition.owner.owner,
      from: work.place,
      delivery,
      raw: null,
      rawKey: keyBytes(key),
      omittedBytes: null,
      omittedSha256: null,
    }
  }
}

const keyBytes = (key: string | null): Buffer | null => (key === null ? null : Buffer.from(key, 'latin1'))

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
