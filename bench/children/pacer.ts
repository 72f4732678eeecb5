// An open loop in a process of its own: calls go to Kafka when they are due, however slow the rest is, and each has its due
// time (microseconds, monotonic) in its messageId, and how much later than that it was produced.
import pino from 'pino'
import { createKafka } from '../../src/adapters/kafka/patched-client.ts'
import { KafkaProducer } from '../../src/adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../../src/adapters/kafka/producer/plain-record.ts'
import { publishAll } from '../../src/adapters/kafka/producer/publish.ts'
import { createCodecs } from '../../src/adapters/schema-registry/codecs.ts'
import { loadConfig } from '../../src/config/config.ts'
import { topicNames } from '../../src/core/topics.ts'
import { nthCall } from '../calls.ts'
import { monotonicMs } from '../measure/clock.ts'
import { turns } from '../measure/turns.ts'

export interface PacerOrder {
  /** Calls a second, of all sources together. */
  rate: number
  seconds: number
  users: number
  /** How often each source gets its turn. */
  weights: number[]
  /** Sources whose turns pass unused. */
  silent: number[]
}

/** As a producer that lingers: with less, the many small requests take most of a core of the broker. */
const tickMs = 5
const config = loadConfig(process.env)
const log = pino({ level: 'warn' }, pino.destination(2))
const topics = topicNames(config.topicPrefix)
const kafka = createKafka(config, log)
const codec = createCodecs({ registry: config.registry, topics, log }).calls
await codec.ready()
const producer = new KafkaProducer(kafka, log)
await producer.ready(topics.calls)

async function run({ rate, seconds, users, weights, silent }: PacerOrder): Promise<void> {
  const order = turns(weights)
  const startAt = monotonicMs() + 50
  const total = Math.floor(rate * seconds)
  const sent = weights.map(() => 0)
  let under = 0
  let failed = 0
  let latestMs = 0
  process.send!({ kind: 'pacing', from: startAt })
  let next = 0
  const finished = Promise.withResolvers<void>()
  // Not a list of promises: all that was sent would stay in memory, and be looked at by each collection.
  const send = async (messages: { key: string; value: Buffer }[]) => {
    under++
    const records = messages.map(encodeRecord)
    await publishAll(producer, topics.calls, records, { withinMs: 30_000 }).catch(() => failed++)
    under--
    if (under === 0 && next >= total) finished.resolve()
  }
  const timer = setInterval(() => {
    const now = monotonicMs()
    const messages: { key: string; value: Buffer }[] = []
    for (; next < total && startAt + (next * 1_000) / rate <= now; next++) {
      const source = order[next % order.length]!
      if (silent.includes(source)) continue
      const dueAt = startAt + (next * 1_000) / rate
      const call = {
        ...nthCall(next, users, `source-${source}`),
        messageId: `due-${microseconds(dueAt)}-${microseconds(now - dueAt)}-${source}-${sent[source]!}`,
      }
      sent[source]!++
      messages.push({ key: call.userId!, value: codec.encode(call) })
      latestMs = Math.max(latestMs, now - dueAt)
    }
    if (messages.length > 0) void send(messages)
    if (next < total) return
    clearInterval(timer)
    if (under === 0) finished.resolve()
  }, tickMs)
  await finished.promise
  process.send!({ kind: 'paced', from: startAt, sent, failed, latestMs })
}

const microseconds = (ms: number): number => Math.round(ms * 1_000)

process.on('message', (order: PacerOrder) => void run(order))
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening' })
