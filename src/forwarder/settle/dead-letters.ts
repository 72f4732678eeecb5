import { createHash } from 'node:crypto'
import type { DeadLetter, DeadLetterReason, Delivery } from '../../core/delivery/delivery.ts'
import type { TopicNames } from '../../core/topics.ts'
import type { Ledger } from '../commit/ledger.ts'
import type { Work } from '../consume/assigned-partition.ts'
import type { ForwarderMetrics } from '../metrics.ts'
import type { MemoryBudget } from '../send/memory-budget.ts'
import type { RecordPublisher, Encoders, Headers } from './record-publisher.ts'

/** A longer key may be what makes a record too large. */
const longestKeyKept = 1_024
const longestDetail = 1_000

/** What settling writes with. */
export interface SettlingParts {
  topics: TopicNames
  encoders: Encoders
  publisher: RecordPublisher
  ledger: Ledger
  budget: MemoryBudget
  metrics: ForwarderMetrics
}

/** Writes dead letters. One that is too large even for their topic keeps its origin, size and hash. */
export class DeadLetters {
  readonly #parts: SettlingParts

  constructor(parts: SettlingParts) {
    this.#parts = parts
  }

  /**
   * @param bytes of the memory budget, which the dead letter holds
   * @param done called once the broker has it, to free them; not when the partition is lost before
   */
  write(work: Work, deadLetter: DeadLetter, bytes: number, done: () => void): void {
    this.#append(work, deadLetter, bytes, done, () => {
      this.#append(work, withoutBytes(deadLetter), bytes, done, () => {
        throw new Error(
          `${this.#parts.topics.deadLetters} refuses a dead letter of a few KB, that of ${originHeader(deadLetter.origin)}: check its max.message.bytes`,
        )
      })
    })
  }

  /** For a delivery that is not active, or no longer: it waited in a tier, or no tier takes it. */
  writeDelivery(
    work: Work,
    rawKey: Uint8Array | null,
    reason: DeadLetterReason,
    detail: string,
    delivery: Delivery,
    now: number,
  ): void {
    const { ledger, metrics, budget } = this.#parts
    const { destinationId, body } = delivery
    const done = () => {
      const destination = metrics.destination(destinationId)
      destination.deadLetter(reason)
      destination.disposition('dead_lettered')
      ledger.moved(work, delivery, 'dead_lettered', { reason })
      budget.free(body.length)
      work.finishOne(ledger.codes.code(destinationId, 'dead_lettered', reason))
    }
    const deadLetter = deadLetterOf(work, { reason, detail, delivery, raw: null, rawKey }, now)
    this.write(work, deadLetter, body.length, done)
  }

  #append(work: Work, deadLetter: DeadLetter, bytes: number, done: () => void, tooLarge: () => void): void {
    const { topics, publisher, encoders, budget } = this.#parts
    const { partition } = work
    publisher.append(topics.deadLetters, {
      ...encoders.deadLetter(deadLetter, headersOf(work, deadLetter.origin)),
      get ownership() {
        return partition.ownership
      },
      dropped: () => budget.free(bytes),
      done,
      tooLarge,
    })
  }
}

function withoutBytes(deadLetter: DeadLetter): DeadLetter {
  const bytes = deadLetter.delivery?.body ?? deadLetter.raw ?? new Uint8Array(0)
  const why = `${deadLetter.reason}: ${deadLetter.detail ?? 'larger than the dead letter topic takes'}`
  return {
    ...deadLetter,
    reason: 'too_large',
    detail: why.slice(0, longestDetail),
    delivery: deadLetter.delivery && { ...deadLetter.delivery, body: new Uint8Array(0) },
    raw: null,
    rawKey: deadLetter.rawKey && deadLetter.rawKey.length <= longestKeyKept ? deadLetter.rawKey : null,
    omittedBytes: bytes.length,
    omittedSha256: createHash('sha256').update(bytes).digest('hex'),
  }
}

const originHeader = (origin: DeadLetter['origin']): string =>
  `${origin.topic}/${origin.partition}/${origin.offset}`

/** The headers of every record that we publish: where it came from, and the trace it belongs to. */
export function headersOf(work: Work, origin: DeadLetter['origin']): Headers {
  const { traceparent } = work
  const own = { 'postrider-origin': originHeader(origin) }
  return traceparent === null ? own : { ...own, traceparent }
}

/** The dead letter of a delivery that finally failed, or of the bytes of a record that never became one. */
export function deadLetterOf(
  work: Work,
  kept: Pick<DeadLetter, 'reason' | 'detail' | 'delivery' | 'raw' | 'rawKey'>,
  now: number,
): DeadLetter {
  return {
    ...kept,
    failedAt: now,
    origin: kept.delivery?.origin ?? work.place,
    owner: work.owner,
    from: work.place,
    omittedBytes: null,
    omittedSha256: null,
  }
}
