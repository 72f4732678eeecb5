import { createHash } from 'node:crypto'
import type { DeadLetter, DeadLetterReason, Delivery } from '../../core/delivery/delivery.ts'
import type { Claim } from '../../core/offsets/ownership.ts'
import type { RecordPublisher } from './record-publisher.ts'
import type { RecordProgress } from '../consume/assigned-partition.ts'
import type { Encoders, Headers } from './record-sink.ts'

/** A longer key may be what makes a record too large. */
const longestKeyKept = 1_024
const longestDetail = 1_000

/** Writes dead letters. One that is too large even for their topic keeps its origin, size and hash. */
export class DeadLetters {
  readonly #topic: string
  readonly #publisher: RecordPublisher
  readonly #encoders: Encoders

  constructor(topic: string, publisher: RecordPublisher, encoders: Encoders) {
    this.#topic = topic
    this.#publisher = publisher
    this.#encoders = encoders
  }

  /** @param done called once the broker has it */
  write(work: RecordProgress, deadLetter: DeadLetter, done: () => void, claim: Claim): void {
    this.#append(work, deadLetter, done, claim, () => {
      this.#append(work, withoutBytes(deadLetter), done, claim, () => {
        throw new Error(
          `${this.#topic} refuses a dead letter of a few KB, that of ${originHeader(deadLetter.origin)}: check its max.message.bytes`,
        )
      })
    })
  }

  #append(
    work: RecordProgress,
    deadLetter: DeadLetter,
    done: () => void,
    claim: Claim,
    tooLarge: () => void,
  ): void {
    this.#publisher.append(this.#topic, {
      ...this.#encoders.deadLetter(deadLetter, headersOf(work, deadLetter.origin)),
      get ownership() {
        return claim.ownership
      },
      dropped: () => claim.dropped(),
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
export function headersOf(work: RecordProgress, origin: DeadLetter['origin']): Headers {
  const { traceparent } = work
  const own = { 'postrider-origin': originHeader(origin) }
  return traceparent === null ? own : { ...own, traceparent }
}

/** The dead letter of a delivery that finally failed. */
export function deadLetterOf(
  work: RecordProgress,
  rawKey: Uint8Array | null,
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
    owner: work.owner,
    from: work.place,
    delivery,
    raw: null,
    rawKey,
    omittedBytes: null,
    omittedSha256: null,
  }
}
