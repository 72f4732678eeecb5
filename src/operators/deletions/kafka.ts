import { randomBytes } from 'node:crypto'
import type { Kafka } from 'kafkajs'
import { GroupLease } from '../../adapters/kafka/group/lease.ts'
import type { ProducerLog } from '../../adapters/kafka/producer/partition-write.ts'
import { KafkaProducer } from '../../adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../../adapters/kafka/producer/plain-record.ts'
import { publishAll } from '../../adapters/kafka/producer/publish.ts'
import { readRange } from '../../adapters/kafka/read/read-range.ts'
import { CallWriter } from '../../adapters/kafka/write/call-writer.ts'
import { orUnavailable } from '../../adapters/kafka/write/or-unavailable.ts'
import type { Context } from '../../cli/context.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { erasureKey, type Erasure } from '../../core/erasure/erasures.ts'
import { requestDeletionOnce, type OncePorts, type Deletions } from './deletions.ts'
import {
  type DeleteCallSink,
  listDeletions,
  requestIdOf,
  showDeletion,
  type DeletionPorts,
  type LedgerReadOptions,
} from './history.ts'
import { requestDeletion, resumeDeletions } from './request.ts'

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

/** A process that was killed holds the key of its request for so long, in ms. */
const leaseMs = 10_000

export interface OpenDeletions extends Deletions {
  close(): Promise<void>
}

/** Deletion requests, for commands and API alike. Asks for nothing yet. */
export function openDeletions(
  deployment: Context,
  { settings, actor }: Pick<DeletionPorts, 'settings' | 'actor'>,
): OpenDeletions {
  const { config, kafka, log, topics, codecs } = deployment
  const writer = new DeletionWriter({ kafka, topics, codecs, log })
  const recordsOf = (topic: string, { since, signal }: LedgerReadOptions) =>
    readRange({
      kafka,
      topic,
      log,
      ...(since !== undefined && { since }),
      ...(signal && { signal }),
    })
  const ports: OncePorts = {
    settings,
    actor,
    erasures: {
      write: (erasures) => writer.writeErasures(erasures),
      async *read(options) {
        for await (const { value, offset, timestamp } of recordsOf(topics.erasures, options)) {
          const erasure = await codecs.erasures.read(value, (error) =>
            log.warn({ topic: topics.erasures, offset, error }, 'an erasure cannot be read'),
          )
          if (erasure) yield { erasure, appendedAt: timestamp }
        }
      },
    },
    openCalls: () => writer.openCalls(),
    async *events(messageIdPrefix, options) {
      const prefix = Buffer.from(messageIdPrefix)
      for await (const { key, value } of recordsOf(topics.deliveries, options)) {
        // Its key is the messageId: what is of other calls, which is nearly all, need not be read.
        if (!key?.subarray(0, prefix.length).equals(prefix)) continue
        const event = await codecs.deliveries.read(value)
        if (event) yield event
      }
    },
    newRequestId: (at) => requestIdOf(at, randomBytes(5).toString('hex')),
    now: Date.now,
    acquire: (key) =>
      GroupLease.acquire({
        kafka,
        groupId: `${config.groupId}.deletion.${key}`,
        topic: topics.erasures,
        sessionTimeoutMs: leaseMs,
        what: 'this request',
        busy: 'this request',
      }),
  }
  return {
    request: (given, options) => requestDeletion(ports, given, options),
    requestOnce: (given, key, options) => requestDeletionOnce(ports, given, key, options),
    resume: (requestId = null, options = {}) => resumeDeletions(ports, requestId, options),
    list: (signal) => listDeletions(ports, signal),
    show: (requestId, signal) => showDeletion(ports, requestId, signal),
    close: () => Promise.resolve(writer.close()),
  }
}
