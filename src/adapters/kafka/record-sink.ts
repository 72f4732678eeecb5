import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka, Producer } from 'kafkajs'
import type { Logger } from 'pino'
import { messageOf } from '../../errors.ts'
import type { EncodedRecord, RecordSink } from '../../forwarder/ports.ts'
import { SortedRecords } from './sorted-records.ts'

const maxBackOffMs = 5_000
/** acks=all: every in-sync replica has it. */
const allReplicas = -1

function isTooLarge(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) {
    if ((at as Error & { type?: string }).type === 'MESSAGE_TOO_LARGE') return true
  }
  return false
}

/** Appends with acks=all, and tries again for ever while the brokers are away. */
export class KafkaSink implements RecordSink {
  readonly #kafka: Kafka
  readonly #log: Logger
  readonly #produced: (seconds: number) => void
  readonly #stopping = new AbortController()
  readonly #sorted = new SortedRecords()
  #producer: Promise<Producer> | null = null

  constructor(kafka: Kafka, log: Logger, produced: (seconds: number) => void) {
    this.#kafka = kafka
    this.#log = log
    this.#produced = produced
  }

  async append(
    lots: readonly { topic: string; records: readonly EncodedRecord[] }[],
  ): Promise<'ok' | 'too_large'> {
    const topicMessages = lots.map(({ topic, records }) => ({
      topic,
      messages: this.#sorted.messages(records),
    }))
    for (let wait = 100; ; wait = Math.min(wait * 2, maxBackOffMs)) {
      try {
        const producer = await this.#connected()
        const began = performance.now()
        await producer.sendBatch({ topicMessages, acks: allReplicas })
        this.#produced((performance.now() - began) / 1_000)
        return 'ok'
      } catch (error) {
        if (isTooLarge(error)) return 'too_large'
        this.#log.warn(
          { retryInMs: wait, topics: lots.map(({ topic }) => topic) },
          `hand-over waits: ${messageOf(error)}`,
        )
        await delay(wait, undefined, { signal: this.#stopping.signal })
      }
    }
  }

  async close(): Promise<void> {
    this.#stopping.abort()
    const producer = await this.#producer?.catch(() => null)
    await producer?.disconnect().catch(() => {})
  }

  #connected(): Promise<Producer> {
    this.#producer ??= this.#connect().catch((error: unknown) => {
      this.#producer = null
      throw error
    })
    return this.#producer
  }

  async #connect(): Promise<Producer> {
    const producer = this.#kafka.producer({
      allowAutoTopicCreation: false,
      createPartitioner: this.#sorted.partitioner,
    })
    await producer.connect()
    return producer
  }
}
