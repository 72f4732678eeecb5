import kafkajs from 'kafkajs'
import type { Kafka, Message, Producer } from 'kafkajs'
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

/** Writes erasures and delete calls, acks=all. Connects at the first write. */
export class DeletionWriter {
  readonly #topic: string
  readonly #codecs: DeletionCodecs
  readonly #producer: Producer
  readonly #calls: CallWriter
  #connected: Promise<unknown> | null = null

  constructor(kafka: Kafka, topics: { erasures: string; calls: string }, codecs: DeletionCodecs) {
    this.#topic = topics.erasures
    this.#codecs = codecs
    this.#producer = kafka.producer({
      allowAutoTopicCreation: false,
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    })
    this.#calls = new CallWriter(kafka, topics.calls, codecs.calls)
  }

  /** Resolves once all of them are acknowledged. */
  async writeErasures(erasures: readonly Erasure[]): Promise<void> {
    await this.#connect()
    let messages: Message[] = []
    let bytes = 0
    const send = async () => {
      await orUnavailable(this.#producer.send({ topic: this.#topic, acks: -1, messages }))
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

  async writeCall(call: AnalyticsCall): Promise<void> {
    await this.#connect()
    if ((await orUnavailable(this.#calls.add(call))) === 'too_large')
      throw new Error(`the delete call ${call.messageId} is too large for Kafka`)
  }

  async flushCalls(): Promise<void> {
    await orUnavailable(this.#calls.flush())
  }

  async close(): Promise<void> {
    await this.#connected?.catch(() => {})
    await Promise.allSettled([this.#producer.disconnect(), this.#calls.close()])
  }

  async #connect(): Promise<void> {
    const { erasures, calls } = this.#codecs
    this.#connected ??= Promise.all([erasures.ready(), calls.ready()]).then(() =>
      orUnavailable(Promise.all([this.#producer.connect(), this.#calls.connect()])),
    )
    try {
      await this.#connected
    } catch (error) {
      this.#connected = null
      throw error
    }
  }
}

async function orUnavailable<T>(work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    if (!(error instanceof Error && error.name.startsWith('KafkaJS'))) throw error
    throw new PostriderError(
      'kafka_unavailable',
      `Kafka did not take all of it: ${messageOf(error)}. \`postrider deletions resume\` goes on where this stopped`,
      { cause: error },
    )
  }
}
