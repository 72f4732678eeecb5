import { PostriderError, messageOf } from '../../errors.ts'
import { retryForever } from '../../retry-forever.ts'
import type { Block, AssignedPartition } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import type { Log } from '../log.ts'
import type { RecordDecoder } from './planner.ts'

/**
 * Fetches the schemas of records that cannot be decoded yet. A registry that is away is asked again for ever,
 * with back-off: no record is skipped for it. A schema that is not to be had is remembered by the decoder, whose
 * next `tryDecode` throws.
 */
export class SchemaLoader {
  readonly #log: Pick<Log, 'warn'>
  readonly #signal: AbortSignal
  /** Partitions whose head waits for a registry that did not answer. */
  #waiting = 0

  constructor(log: Pick<Log, 'warn'>, signal: AbortSignal) {
    this.#log = log
    this.#signal = signal
  }

  /** Records wait for a registry that does not answer. */
  get isWaiting(): boolean {
    return this.#waiting > 0
  }

  /** Of the record at the head of the partition, or of one that it stands for. */
  load(
    decoder: RecordDecoder<unknown>,
    partition: AssignedPartition,
    record: Pick<FetchedRecord, 'value'> = partition.peek()!,
  ): Block {
    return { kind: 'pending', settled: this.#load(decoder, partition, record) }
  }

  async #load(
    decoder: RecordDecoder<unknown>,
    work: AssignedPartition,
    { value }: Pick<FetchedRecord, 'value'>,
  ): Promise<void> {
    const { topic, partition } = work
    const { offset } = work.peek()!
    let isWaiting = false
    const load = async () => {
      try {
        if (work.alive) await decoder.load(value!)
      } catch (error) {
        if (!(error instanceof PostriderError) || error.canRetry) throw error
      }
    }
    await retryForever(load, {
      signal: this.#signal,
      onError: (error, retryInMs) => {
        if (!isWaiting) this.#waiting++
        isWaiting = true
        this.#log.warn(
          { topic, partition, offset, retryInMs },
          `a record waits for its schema: ${messageOf(error)}`,
        )
      },
    })
    if (isWaiting) this.#waiting--
  }
}
