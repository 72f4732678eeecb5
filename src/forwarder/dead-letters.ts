import { createHash } from 'node:crypto'
import type { DeadLetter, DeadLetterReason, Delivery } from '../core/delivery.ts'
import type { Claim } from './claim.ts'
import type { HandOver } from './hand-over.ts'
import type { RecordWork } from './partition-work.ts'
import type { Encoders, Headers } from './ports.ts'

/** A longer key may be what makes a record too large. */
const longestKeyKept = 1_024
const longestDetail = 1_000

/** Writes dead letters. What is too large even for their topic keeps its origin, size and hash. */
export class DeadLetters {
  readonly #topic: string
  readonly #handOver: HandOver
  readonly #encoders: Encoders

  constructor(topic: string, handOver: HandOver, encoders: Encoders) {
    this.#topic = topic
    this.#handOver = handOver
    this.#encoders = encoders
  }

  /** @param done called once the broker has it */
  write(work: RecordWork, letter: DeadLetter, done: () => void, claim: Claim): void {
    this.#append(work, letter, done, claim, () => {
      this.#append(work, withoutBytes(letter), done, claim, () => {
        throw new Error(
          `${this.#topic} refuses a dead letter of a few KB, that of ${originHeader(letter.origin)}: check its max.message.bytes`,
        )
      })
    })
  }

  #append(work: RecordWork, letter: DeadLetter, done: () => void, claim: Claim, tooLarge: () => void): void {
    this.#handOver.append(this.#topic, {
      ...this.#encoders.deadLetter(letter, headersOf(work, letter.origin)),
      get standing() {
        return claim.standing
      },
      dropped: () => claim.dropped(),
      done,
      tooLarge,
    })
  }
}

function withoutBytes(letter: DeadLetter): DeadLetter {
  const bytes = letter.delivery?.body ?? letter.raw ?? new Uint8Array(0)
  const why = `${letter.reason}: ${letter.detail ?? 'larger than the dead letter topic takes'}`
  return {
    ...letter,
    reason: 'too_large',
    detail: why.slice(0, longestDetail),
    delivery: letter.delivery && { ...letter.delivery, body: new Uint8Array(0) },
    raw: null,
    rawKey: letter.rawKey && letter.rawKey.length <= longestKeyKept ? letter.rawKey : null,
    omittedBytes: bytes.length,
    omittedSha256: createHash('sha256').update(bytes).digest('hex'),
  }
}

const originHeader = (origin: DeadLetter['origin']): string =>
  `${origin.topic}/${origin.partition}/${origin.offset}`

/** What every record that we hand on carries beside its value: where it came from, and the trace it belongs to. */
export function headersOf(work: RecordWork, origin: DeadLetter['origin']): Headers {
  const { traceparent } = work
  const own = { 'postrider-origin': originHeader(origin) }
  return traceparent === null ? own : { ...own, traceparent }
}

/** Of a delivery that finally failed. */
export function letterOf(
  work: RecordWork,
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
