import type { Kafka } from 'kafkajs'
import type { DeleteCallSink } from '../../../console/deletions/deletion-records.ts'
import type { AnalyticsCall } from '../../../core/call/analytics-call.ts'
import { erasureKey, type Erasure } from '../../../core/erasure/erasures.ts'
import { CallWriter } from './call-writer.ts'
import { orUnavailable } from './or-unavailable.ts'
import type { ProducerLog } from '../producer/failing-writes.ts'
import { KafkaProducer } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { publishAll } from '../producer/publish.ts'

export interface DeletionWriterOptions {
  kafka: Kafka
  topics: { erasures: string; calls: string }
  codecs: {
    erasures: { encode(erasure: Erasure): Buffer; ready(): Promise<void> }
    calls: { encode(call: AnalyticsCall): Buffer; ready(): Promise<void> }
  }
  log: ProducerLog
}

/** Writes erasures and delete calls, acks=all. Connects at the first write. All throw `kafka_unavailable`. */
export class DeletionWriter {
  readonly #options: DeletionWriterOptions
  readonly #producer: KafkaProducer

  constructor(options: DeletionWriterOptions) {
    this.#options = options
    this.#producer = new KafkaProducer(options.kafka, options.log)
  }

  /** Resolves once all of them are acknowledged. */
  async writeErasures(erasures: readonly Erasure[]): Promise<void> {
    const { topics, codecs } = this.#options
    await codecs.erasures.ready()
    const records = erasures.map((erasure) => {
      const key = erasureKey(erasure.sourceId, erasure.userId)
      return encodeRecord({ key, value: codecs.erasures.encode(erasure) })
    })
    await orUnavailable(publishAll(this.#producer, topics.erasures, records))
  }

  /** A writer that failed once stays failed: each request has one of its own. */
  openCalls(): DeleteCallSink {
    const { kafka, topics, codecs, log } = this.#options
    const writer = new CallWriter(kafka, topics.calls, codecs.calls, log)
    const connected = once(() => Promise.all([codecs.calls.ready(), writer.connect()]))
    return {
      async write(call) {
        await orUnavailable(connected())
        if ((await orUnavailable(writer.add(call))) === 'too_large')
          throw new Error(`the delete call ${call.messageId} is too large for Kafka`)
      },
      flush: () => orUnavailable(writer.flush()),
      close: () => Promise.resolve(writer.close()),
    }
  }

  close(): void {
    this.#producer.close()
  }
}

/** Does it once; again only if it failed. */
function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | null = null
  return () => {
    done ??= work().catch((error: unknown) => {
      done = null
      throw error
    })
    return done
  }
}
