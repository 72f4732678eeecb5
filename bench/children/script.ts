// A reference: what one would write oneself, at its best. Plain kafkajs, without Postrider's patches, and undici's
// `dispatch`, its fastest way: each record is decoded, rendered, signed and posted as soon as it is read. It keeps no
// order, limits nothing, retries nothing, and commits what is read whatever becomes of it; so it does less than it would
// have to. Decoding and signing are Postrider's own, the fastest there are.
import kafkajs from 'kafkajs'
import pino from 'pino'
import { Pool, type Dispatcher } from 'undici'
import { createCodecs } from '../../src/adapters/schema-registry/codecs.ts'
import { loadConfig } from '../../src/config/config.ts'
import { renderBody } from '../../src/core/call/body.ts'
import { topicNames } from '../../src/core/topics.ts'
import { BodySigner } from '../../src/forwarder/plan/destination-runtime.ts'
import { sharedSecret } from '../calls.ts'

const config = loadConfig(process.env)
const log = pino({ level: 'warn' }, pino.destination(2))
const topics = topicNames(config.topicPrefix)
const { calls } = createCodecs({ registry: config.registry, topics, log })
await calls.ready()

const connections = 64
const commitMs = 100
const signer = new BodySigner(sharedSecret)
/** By source. */
const endpoints = new Map(
  Object.entries(JSON.parse(process.argv[2]!) as Record<string, string>).map(([source, url]) => {
    const { origin, pathname } = new URL(url)
    return [source, { pool: new Pool(origin, { connections }), path: pathname }]
  }),
)

/** One for all: it keeps nothing of a request. */
const answered: Dispatcher.DispatchHandler = {
  onRequestStart() {},
  onResponseStart() {},
  onResponseData() {},
  onResponseEnd() {},
  onResponseError(_controller, error) {
    console.error(error.message)
  },
}

async function post(value: Buffer | null): Promise<void> {
  const call = calls.tryDecode(value) ?? (await calls.decode(value))
  const { pool, path } = endpoints.get(call.sourceId)!
  const body = Buffer.from(renderBody(call))
  const headers = [
    ...['User-Agent', 'postrider/1.0', 'Content-Type', 'application/json'],
    ...['X-Signature', signer.sign(body), 'Idempotency-Key', `${call.messageId}:crm`],
  ]
  pool.dispatch({ method: 'POST', path, headers, body }, answered)
}

const kafka = new kafkajs.Kafka({ clientId: 'script', brokers: config.kafka.brokers })
const consumer = kafka.consumer({ groupId: config.groupId })
await consumer.connect()
await consumer.subscribe({ topics: [topics.calls], fromBeginning: true })
consumer.on('consumer.group_join', () => process.send!({ kind: 'ready' }))
process.on('disconnect', () => void consumer.disconnect().then(() => process.exit()))
await consumer.run({
  autoCommitInterval: commitMs,
  partitionsConsumedConcurrently: 12,
  eachBatch: ({ batch }) => {
    for (const { value } of batch.messages) void post(value)
    return Promise.resolve()
  },
})
