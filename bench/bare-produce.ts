// A reference: kafkajs alone, without what Postrider mends of it, which sends the same records, made beforehand, in lots of a given size.
import kafkajs from 'kafkajs'
import pino from 'pino'
import { createCodecs } from '../src/adapters/schema-registry/codecs.ts'
import { loadConfig } from '../src/config.ts'
import { topicNames } from '../src/core/topics.ts'
import { nthCall } from './calls.ts'

interface Order {
  lot: number
  /** Lots under way at once. */
  inFlight: number
  warmUpMs: number
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

async function run({ lot, inFlight, warmUpMs, measureMs }: Order): Promise<void> {
  const from = performance.now() + warmUpMs
  const until = from + measureMs
  let [at, written] = [0, 0]
  let cpu = process.cpuUsage()
  setTimeout(() => (cpu = process.cpuUsage()), warmUpMs)
  const loop = async () => {
    while (performance.now() < until) {
      if (at + lot > messages.length) at = 0
      const some = messages.slice(at, (at += lot))
      await producer.send({ topic: topics.calls, acks: -1, messages: some })
      const now = performance.now()
      if (now > from && now <= until) written += lot
    }
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  const { user, system } = process.cpuUsage(cpu)
  const cpuShare = (user + system) / 1_000 / (performance.now() - from)
  process.send!({ kind: 'produced', perSecond: (written * 1_000) / measureMs, cpuShare })
}

process.on('message', (order: Order) => void run(order))
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening' })
