// A reference: kafkajs alone, without Postrider's patches, which sends the same records, made beforehand, in batches of a given size.
import kafkajs from 'kafkajs'
import pino from 'pino'
import { createCodecs } from '../../src/adapters/schema-registry/codecs.ts'
import { loadConfig } from '../../src/config/config.ts'
import { topicNames } from '../../src/core/topics.ts'
import { nthCall } from '../calls.ts'

interface Order {
  batchSize: number
  /** Batches in flight at once. */
  inFlight: number
  /** Both have passed when the measurement begins. */
  warmUpMs: number
  warmUpCalls: number
  measureMs: number
}

const config = loadConfig(process.env)
const log = pino({ level: 'warn' }, pino.destination(2))
const topics = topicNames(config.topicPrefix)
const { calls } = createCodecs({ registry: config.registry, topics, log })
await calls.ready()
const messages = Array.from({ length: 100_000 }, (_, index) => {
  const call = nthCall(index, 10_000)
  return { key: call.userId, value: calls.encode(call) }
})
const producer = new kafkajs.Kafka({ clientId: 'bench', brokers: config.kafka.brokers }).producer({
  createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
})
await producer.connect()

async function run({ batchSize, inFlight, warmUpMs, warmUpCalls, measureMs }: Order): Promise<void> {
  const began = performance.now()
  let [from, until] = [Infinity, Infinity]
  let [at, all, written, late] = [0, 0, 0, 0]
  let cpu = process.cpuUsage()
  const loop = async () => {
    for (;;) {
      if (at + batchSize > messages.length) at = 0
      const some = messages.slice(at, (at += batchSize))
      await producer.send({ topic: topics.calls, acks: -1, messages: some })
      const now = performance.now()
      all += batchSize
      if (now > until) return void (late += batchSize)
      if (now > from) written += batchSize
      else if (now > began + warmUpMs && all >= warmUpCalls && from === Infinity) {
        from = now
        until = now + measureMs
        cpu = process.cpuUsage()
      }
    }
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  const { user, system } = process.cpuUsage(cpu)
  const cpuMs = (user + system) / 1_000
  process.send!({
    kind: 'produced',
    perSecond: (written * 1_000) / measureMs,
    calls: written + late,
    cpuMs,
    cpuShare: cpuMs / (performance.now() - from),
  })
}

process.on('message', (order: Order) => void run(order))
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening' })
