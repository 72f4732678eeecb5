import { messageOf } from '../../../errors.ts'
import type { PartitionWrite } from './partition-write.ts'
import type { ProduceFailure } from './produce-errors.ts'

/** Records that have failed for this long are worth a line in the log, and a word in readiness. */
const longMs = 5_000
const warnAgainMs = 30_000

export interface ProducerLog {
  debug(fields: object, message: string): void
  warn(fields: object, message: string): void
  info(fields: object, message: string): void
}

/** The writes that Kafka has not acknowledged and that are sent again: for readiness and the log. */
export class FailingWrites {
  readonly #log: ProducerLog
  readonly #writes = new Set<PartitionWrite>()

  constructor(log: ProducerLog) {
    this.#log = log
  }

  /** Null while all goes well; else what Kafka has not acknowledged for seconds, in one line for people. */
  problem(): string | null {
    const since = performance.now() - longMs
    for (const { topic, failedSince, failure } of this.#writes)
      if (failedSince <= since) return `Kafka does not acknowledge records of ${topic}: ${messageOf(failure)}`
    return null
  }

  failed(one: PartitionWrite, { message: error }: ProduceFailure): void {
    this.#writes.add(one)
    const { topic, batch } = one
    this.#log.debug({ topic, partition: batch.partition, error }, 'records were not acknowledged')
  }

  /** It is sent again: logged once it has failed for long, and every 30 s from then on. */
  sentAgain(one: PartitionWrite, { message: error }: ProduceFailure): void {
    const now = performance.now()
    if (now - one.failedSince < longMs || now - (one.warnedAt ?? -Infinity) < warnAgainMs) return
    one.warnedAt = now
    const { topic, batch } = one
    const seconds = Math.round((now - one.failedSince) / 1_000)
    this.#log.warn(
      { topic, partition: batch.partition, records: batch.count, seconds, error },
      'Kafka does not acknowledge records; they are sent again until it does',
    )
  }

  acknowledged({ topic, batch, warnedAt }: PartitionWrite): void {
    if (warnedAt !== null) this.#log.info({ topic, partition: batch.partition }, 'Kafka acknowledges again')
  }

  /** It is neither failing nor sent again any more. */
  forget(one: PartitionWrite): void {
    this.#writes.delete(one)
  }
}
