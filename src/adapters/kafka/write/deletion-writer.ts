import type { Kafka } from 'kafkajs'
import type { DeleteCallSink } from '../../../console/deletions/deletion-records.ts'
import type { AnalyticsCall } from '../../../core/call/analytics-call.ts'
import { erasureKey, type Erasure } from '../../../core/erasure/erasures.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import { CallWriter } from './call-writer.ts'
import { KafkaProducer, type ProducerLog } from '../producer/kafka-producer.ts'
import { encodeRecord } from '../producer/plain-record.ts'
import { ProduceFailure } from '../producer/produce-errors.ts'
import { publishAll } from '../producer/publish.ts'

/** Longer than leaders take to move. */
const acknowledgeWithinMs = 30_000

interface DeletionCodecs {
  erasures: { encode(erasure: Erasure): Buffer; ready(): Promise<void> }
  calls: { encode(call: AnalyticsCall): Buffer; ready(): Promise<void> }
}

/** Writes erasures and delete calls, acks=all. Connects at the first write. All throw `kafka_unavailable`. */
export class DeletionWriter {
  readonly #kafka: Kafka
  readonly #topics: { erasures: string; calls: string }
  readonly #codecs: DeletionCodecs
  readonly #log: ProducerLog
  readonly #producer: KafkaProducer

  constructor(
    kafka: Kafka,
    topics: { erasures: string; calls: string },
    codecs: DeletionCodecs,
    log: ProducerLog,
  ) {
    this.#kafka = kafka
    this.#topics = topics
    this.#codecs = codecs
    this.#log = log
    this.#producer = new KafkaProducer(kafka, log)
  }

  /** Resolves once all of them are acknowledged. */
  async writeErasures(erasures: readonly Erasure[]): Promise<void> {
    const codec = this.#codecs.erasures
    await codec.ready()
    const records = erasures.map((erasure) =>
      encodeRecord({ key: erasureKey(erasure.sourceId, erasure.userId), value: codec.encode(erasure) }),
    )
    const withinMs = acknowledgeWithinMs
    await orUnavailable(publishAll(this.#producer, this.#topics.erasures, records, { withinMs }))
  }

  /** A writer that failed once stays failed: each request has one of its own. */
  openCalls(): DeleteCallSink {
    const codec = this.#codecs.calls
    const writer = new CallWriter(this.#kafka, this.#topics.calls, codec, this.#log)
    const connected = once(() => Promise.all([codec.ready(), writer.connect()]))
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

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof ProduceFailure)) throw error
    throw new PostriderError('kafka_unavailable', `Kafka did not take all of it: ${messageOf(error)}`, {
      cause: error,
    })
  }
}
