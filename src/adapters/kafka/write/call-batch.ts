import type { CallBatch } from '../../../collector/call-batch-sink.ts'
import { partitionKey, type AnalyticsCall } from '../../../core/call/analytics-call.ts'
import { partitionOfKey } from '../wire/murmur2.ts'
import { headerBytes, RecordBundle } from '../wire/record-bundle.ts'
import type { ValueWriter } from '../wire/record-bytes.ts'

/** A batch is one request a broker: more calls save no more, and the first ones would wait longer. */
const maxCalls = 1_000
/** The topic's max.message.bytes holds for one partition's records together, hence for the whole batch. */
const maxBytes = 1_048_576 - 4_096

/** Says in each record that a collector wrote it: `postrider why` distinguishes it from what others write there. */
export const collectorHeader = { name: 'via', value: 'collector' }
const via = { [collectorHeader.name]: collectorHeader.value }
const headers = headerBytes(via)

/** Calls that are written to Kafka together, encoded as they came in and sorted by partition. */
export class EncodedCallBatch implements CallBatch {
  readonly written: Promise<boolean>
  readonly settle: (written: boolean) => void
  readonly since = performance.now()
  readonly #partitions: number
  readonly #bundles: (RecordBundle | undefined)[] = []
  #calls = 0
  #bytes = 0
  /** Of the last call that had a trace: those of one request come together. */
  #traced: { traceparent: string; headers: Buffer } | null = null

  /** @param partitions number of the topic's partitions */
  constructor(partitions: number) {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.written = promise
    this.settle = resolve
    this.#partitions = partitions
  }

  get calls(): number {
    return this.#calls
  }

  /** One for each partition that has any: Kafka takes no empty batch. */
  get bundles(): RecordBundle[] {
    return this.#bundles.filter((bundle) => bundle !== undefined && bundle.count > 0) as RecordBundle[]
  }

  /** Whether the call was taken; the first one always is. */
  add(call: AnalyticsCall, writer: ValueWriter<AnalyticsCall>, traceparent: string | null = null): boolean {
    if (this.#calls === maxCalls) return false
    const key = partitionKey(call)
    // No call that the collector takes is without a key.
    const partition = key === null ? 0 : partitionOfKey(key, this.#partitions)
    const bundle = (this.#bundles[partition] ??= new RecordBundle(partition, headers))
    const before = bundle.bytes
    bundle.append(key, call, writer, traceparent === null ? null : this.#tracedHeaders(traceparent))
    const bytes = bundle.bytes - before
    if (this.#bytes + bytes > maxBytes && this.#calls > 0) {
      bundle.undo()
      return false
    }
    this.#bytes += bytes
    this.#calls++
    return true
  }

  #tracedHeaders(traceparent: string): Buffer {
    if (this.#traced?.traceparent !== traceparent)
      this.#traced = { traceparent, headers: headerBytes({ ...via, traceparent }) }
    return this.#traced.headers
  }
}
