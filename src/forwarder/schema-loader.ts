import { setTimeout as delay } from 'node:timers/promises'
import { PostriderError, messageOf } from '../errors.ts'
import type { Block } from './partition-work.ts'
import type { RecordDecoder } from './ports.ts'

const maxBackOffMs = 5_000

/**
 * Fetches the schemas of records that cannot be decoded yet. A registry that is away is asked again for ever,
 * with back-off: no record is skipped for it. A schema that is not to be had is remembered by the decoder, whose
 * next `tryDecode` throws.
 */
export class SchemaLoader {
  readonly #log: { warn(fields: object, message: string): void }
  readonly #signal: AbortSignal
  #away = false

  constructor(log: { warn(fields: object, message: string): void }, signal: AbortSignal) {
    this.#log = log
    this.#signal = signal
  }

  /** Records wait for a registry that does not answer. */
  get isWaiting(): boolean {
    return this.#away
  }

  load(decoder: RecordDecoder<unknown>, value: Buffer): Block {
    return { kind: 'pending', settled: this.#load(decoder, value) }
  }

  async #load(decoder: RecordDecoder<unknown>, value: Buffer): Promise<void> {
    for (let wait = 100; !this.#signal.aborted; wait = Math.min(wait * 2, maxBackOffMs)) {
      try {
        await decoder.load(value)
        this.#away = false
        return
      } catch (error) {
        if (error instanceof PostriderError && !error.canRetry) return
        this.#away = true
        this.#log.warn({ retryInMs: wait }, `a record waits for its schema: ${messageOf(error)}`)
        await delay(wait, undefined, { signal: this.#signal }).catch(() => {})
      }
    }
  }
}
