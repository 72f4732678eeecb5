import { setTimeout as delay } from 'node:timers/promises'
import { PostriderError, messageOf } from '../../errors.ts'
import type { Block, AssignedPartition } from '../consume/assigned-partition.ts'
import type { RecordDecoder } from './inputs.ts'

const maxBackOffMs = 5_000

/**
 * Fetches the schemas of records that cannot be decoded yet. A registry that is away is asked again for ever,
 * with back-off: no record is skipped for it. A schema that is not to be had is remembered by the decoder, whose
 * next `tryDecode` throws.
 */
export class SchemaLoader {
  readonly #log: { warn(fields: object, message: string): void }
  readonly #signal: AbortSignal
  /** Partitions whose head waits for a registry that did not answer. */
  #waiting = 0

  constructor(log: { warn(fields: object, message: string): void }, signal: AbortSignal) {
    this.#log = log
    this.#signal = signal
  }

  /** Records wait for a registry that does not answer. */
  get isWaiting(): boolean {
    return this.#waiting > 0
  }

  /** Of the record at the head of the partition. */
  load(decoder: RecordDecoder<unknown>, partition: AssignedPartition): Block {
    return { kind: 'pending', settled: this.#load(decoder, partition) }
  }

  async #load(decoder: RecordDecoder<unknown>, work: AssignedPartition): Promise<void> {
    const { topic, partition } = work
    const { value, offset } = work.peek()!
    let isWaiting = false
    for (let wait = 100; !this.#signal.aborted && work.alive; wait = Math.min(wait * 2, maxBackOffMs)) {
      try {
        await decoder.load(value!)
        break
      } catch (error) {
        if (error instanceof PostriderError && !error.canRetry) break
        if (!isWaiting) this.#waiting++
        isWaiting = true
        this.#log.warn(
          { topic, partition, offset, retryInMs: wait },
          `a record waits for its schema: ${messageOf(error)}`,
        )
        await delay(wait, undefined, { signal: this.#signal }).catch(() => {})
      }
    }
    if (isWaiting) this.#waiting--
  }
}
