import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { installPatches } from '../../../../src/adapters/kafka/patches/index.ts'
import { until } from '../../../support/until.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'

installPatches()
const require = createRequire(import.meta.url)

interface Connection {
  connect(): Promise<unknown>
  disconnect(): Promise<unknown>
  send(exchange: object): Promise<Buffer>
}
const Connection = require('kafkajs/src/network/connection') as new (options: object) => Connection
const Encoder = require('kafkajs/src/protocol/encoder') as new () => object

const exchange = {
  request: { apiKey: 18, apiVersion: 0, apiName: 'ApiVersions', encode: async () => new Encoder() },
  response: { decode: async (payload: Buffer) => payload, parse: async (payload: Buffer) => payload },
}

/** An answer as Kafka frames it: size, the request's correlation id, what it says. */
function answer(request: Buffer, text: string): Buffer {
  const frame = Buffer.alloc(8 + text.length)
  frame.writeInt32BE(4 + text.length, 0)
  request.copy(frame, 4, 8, 12)
  frame.write(text, 8)
  return frame
}

/** A broker that does with each connection's first request what the next of the turns says; it closes none itself. */
async function broker(turns: ((request: Buffer, socket: Socket) => void)[]) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    socket.once('data', (request: Buffer) => turns.shift()!(request, socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const logger = { namespace: () => logger, debug() {}, info() {}, warn() {}, error() {} }
  const connection = new Connection({
    // Nothing here waits for their end.
    ...{ host: '127.0.0.1', port, logger, connectionTimeout: 30_000, requestTimeout: 30_000 },
    socketFactory: ({ host, port, onConnect }: { host: string; port: number; onConnect: () => void }) =>
      connect({ host, port }, onConnect),
  })
  return { server, connection }
}

test('a partial answer on a broken connection is not joined with data of the next connection', async () => {
  const { server, connection } = await broker([
    (request, socket) => socket.end(answer(request, 'an answer of which half is sent').subarray(0, 20)),
    (request, socket) => socket.write(answer(request, 'whole')),
  ])
  try {
    await connection.connect()
    await assert.rejects(connection.send(exchange), { name: 'KafkaJSConnectionClosedError' })
    await connection.connect()
    assert.equal((await connection.send(exchange)).toString(), 'whole')
  } finally {
    await connection.disconnect()
    server.close()
  }
})

test('data that the previous connection still delivers is ignored once there is a new one', async () => {
  const sockets: Socket[] = []
  const { server, connection } = await broker([
    (request, socket) => {
      sockets[0]!.write(answer(request, 'stale'))
      setTimeout(() => socket.write(answer(request, 'fresh')), 50)
    },
  ])
  server.on('connection', (socket) => sockets.push(socket))
  try {
    await connection.connect()
    await connection.disconnect()
    await connection.connect()
    assert.equal((await connection.send(exchange)).toString(), 'fresh')
  } finally {
    await connection.disconnect()
    for (const socket of sockets) socket.destroy()
    server.close()
  }
})

test('a consumer whose connection is cut in the middle of an answer still reads every record', async (t) => {
  let cuts = 0
  const kafka = new kafkajs.Kafka({
    ...{ brokers: brokers(), logLevel: kafkajs.logLevel.NOTHING },
    retry: { initialRetryTime: 20, retries: 20 },
    socketFactory: ({ host, port, onConnect }) => {
      const socket = connect({ host, port }, onConnect)
      let received = 0
      // An answer of a megabyte comes in pieces.
      socket.on('data', (piece: Buffer) => {
        received += piece.length
        if (received < 200_000 || cuts === 3) return
        cuts++
        socket.destroy(new Error('cut'))
      })
      return socket
    },
  })
  const topic = `${uniquePrefix()}cut`
  const admin = kafka.admin()
  const producer = kafka.producer()
  const consumer = kafka.consumer({ groupId: topic })
  t.after(async () => {
    await Promise.all([consumer.disconnect(), producer.disconnect()])
    await admin.deleteTopics({ topics: [topic] })
    // A member that was cut off may still count as one.
    await admin.deleteGroups([topic]).catch(() => {})
    await admin.disconnect()
  })
  await Promise.all([admin.connect(), producer.connect(), consumer.connect()])
  await createTopics(admin, [{ topic, numPartitions: 1 }])
  const values = Array.from({ length: 40 }, (_, index) => `${index} `.repeat(8_000))
  for (const value of values) await producer.send({ topic, messages: [{ value }] })
  await consumer.subscribe({ topic, fromBeginning: true })
  const seen = new Set<string>()
  await consumer.run({
    autoCommit: false,
    eachMessage: async ({ message }) => void seen.add(message.value!.toString()),
  })
  await until(() => seen.size === values.length, 30_000, 'every record')
  assert.deepEqual(seen, new Set(values))
  assert.equal(cuts, 3)
})
