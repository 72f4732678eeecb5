import kafkajs from 'kafkajs'
import type { Kafka, Message, Producer } from 'kafkajs'
import type { CallSink } from '../../console/deletions/ports.ts'
import type { AnalyticsCall } from '../../core/analytics-call.ts'
import { erasureKey, type Erasure } from '../../core/erasures.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import { CallWriter } from './call-writer.ts'

/** Of one send, which the broker takes whole or not at all: below the 1 MB that it takes unless set otherwise. */
const mostLotBytes = 900_000
const recordOverheadBytes = 64

interface DeletionCodecs {
  erasures: { encode(erasure: Erasure): Buffer; ready(): Promise<void> }
  calls: { encode(call: AnalyticsCall): Buffer; ready(): Promise<void> }
}

/** Writes erasures and delete calls, acks=all. Connects at the first write. All throw `kafka_unavailable`. */
export class DeletionWriter {
  readonly #kafka: Kafka
  readonly #topics: { erasures: string; calls: string }
  readonly #codecs: DeletionCodecs
  readonly #producer: Producer
  readonly #connected: () => Promise<unknown>

  constructor(kafka: Kafka, topics: { erasures: string; calls: string }, codecs: DeletionCodecs) {
    this.#kafka = kafka
    this.#topics = topics
    this.#codecs = codecs
    this.#producer = kafka.producer({
      allowAutoTopicCreation: false,
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    })
    this.#connected = once(() => Promise.all([codecs.erasures.ready(), this.#producer.connect()]))
  }

  /** Resolves once all of them are acknowledged. */
  async writeErasures(erasures: readonly Erasure[]): Promise<void> {
    await orUnavailable(this.#connected())
    let messages: Message[] = []
    let bytes = 0
    const send = async () => {
      await orUnavailable(this.#producer.send({ topic: this.#topics.erasures, acks: -1, messages }))
      messages = []
      bytes = 0
    }
    for (const erasure of erasures) {
      const key = erasureKey(erasure.sourceId, erasure.userId)
      const value = this.#codecs.erasures.encode(erasure)
      const size = Buffer.byteLength(key) + value.length + recordOverheadBytes
      if (messages.length > 0 && bytes + size > mostLotBytes) await send()
      messages.push({ key, value })
      bytes += size
    }
    if (messages.length > 0) await send()
  }

  /** A writer that failed once stays failed: each request has one of its own. */
  openCalls(): CallSink {
    const codec = this.#codecs.calls
    const writer = new CallWriter(this.#kafka, this.#topics.calls, codec)
    const connected = once(() => Promise.all([codec.ready(), writer.connect()]))
    return {
      async write(call) {
        await orUnavailable(connected())
        if ((await orUnavailable(writer.add(call))) === 'too_large')
          throw new Error(`the delete call ${call.messageId} is too large for Kafka`)
      },
      flush: () => orUnavailable(writer.flush()),
      close: () => writer.close(),
    }
  }

  async close(): Promise<void> {
    await this.#producer.disconnect()
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
    if (!(error instanceof Error && error.name.startsWith('KafkaJS'))) throw error
    throw new PostriderError('kafka_unavailable', `Kafka did not take all of it: ${messageOf(error)}`, {
      cause: error,
    })
  }
}
