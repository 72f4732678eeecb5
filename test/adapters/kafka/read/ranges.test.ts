import assert from 'node:assert/strict'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import kafkajs from 'kafkajs'
import { createTopics } from '../../../../src/adapters/kafka/admin/topics.ts'
import { connectionFactory } from '../../../../src/adapters/kafka/kafkajs-internals.ts'
import { createKafka } from '../../../../src/adapters/kafka/patched-client.ts'
import { BrokerConnection } from '../../../../src/adapters/kafka/link/broker-connection.ts'
import { Brokers } from '../../../../src/adapters/kafka/link/brokers.ts'
import { readBetween, readSpans } from '../../../../src/adapters/kafka/read/read-range.ts'
import { StretchReader } from '../../../../src/adapters/kafka/read/stretch-reader.ts'
import { topicRanges, type OffsetRange } from '../../../../src/adapters/kafka/read/topic-offsets.ts'
import { PostriderError } from '../../../../src/errors.ts'
import { brokers, uniquePrefix } from '../../../support/deployment/rig.ts'
import { silentLog } from '../../../support/silent-log.ts'
import { until } from '../../../support/until.ts'
import { deleteRecords } from '../../../support/kafka/delete-records.ts'

const { CompressionTypes } = kafkajs

async function aTopic(t: TestContext, numPartitions: number) {
  const kafka = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog)
  const topic = `${uniquePrefix()}direct`
  const admin = kafka.admin()
  const producer = kafka.producer()
  const shared = new Brokers(kafka, 10_000)
  t.after(async () => {
    shared.close()
    await producer.disconnect()
    await admin.deleteTopics({ topics: [topic] })
    await admin.disconnect()
  })
  await Promise.all([admin.connect(), producer.connect()])
  await createTopics(admin, [{ topic, numPartitions }])
  const read = async (ranges: readonly OffsetRange[], onEach: (value: string) => void = () => {}) => {
    const found: string[] = []
    await readBetween(ranges, {
      ...{ kafka, brokers: shared, topic, log: silentLog, fetchBytes: 300 },
      onRecord: ({ value, headers }) => {
        onEach(String(value))
        found.push(`${String(value)} ${String(headers.via)}`)
      },
    })
    return found
  }
  const send = (partition: number, values: string[], compression = CompressionTypes.None) => {
    const messages = values.map((value) => ({ partition, value, headers: { via: 'test' } }))
    return producer.send({ topic, compression, messages })
  }
  return { kafka, topic, admin, shared, read, send }
}

const named = (values: readonly string[]) => values.map((value) => `${value} test`)

test('beginnings, ends and times are the same as those that the admin client finds', async (t) => {
  const { topic, admin, shared, send } = await aTopic(t, 3)
  await send(0, ['a', 'b'])
  const between = Date.now() + 1
  await until(() => Date.now() > between, 1_000, 'the next millisecond')
  await send(0, ['c'])
  await send(1, ['d'])
  await deleteRecords(admin, topic, [{ partition: 0, offset: 1 }])
  const times = [between, null, between]
  const sinceOf = (_: string, partition: number) => times[partition]!
  const ranges = await topicRanges(shared, [topic], sinceOf)
  assert.deepEqual(
    ranges.toSorted((a, b) => a.partition - b.partition),
    [
      { topic, partition: 0, low: 1, high: 3, since: 2 },
      { topic, partition: 1, low: 0, high: 1, since: null },
      { topic, partition: 2, low: 0, high: 0, since: 0 },
    ],
  )
  const byAdmin = await admin.fetchTopicOffsets(topic)
  assert.deepEqual(
    byAdmin.map(({ partition, low, high }) => [partition, Number(low), Number(high)]).toSorted(),
    ranges.map(({ partition, low, high }) => [partition, low, high]).toSorted(),
  )
  const since = await admin.fetchTopicOffsetsByTimestamp(topic, between)
  for (const { partition, offset } of since)
    if (partition !== 1)
      assert.equal(Number(offset), ranges.find((each) => each.partition === partition)!.since)
})

test('exactly the visible records of the ranges are read, in order within a partition', async (t) => {
  const { kafka, topic, shared, read, send } = await aTopic(t, 2)
  const values = Array.from({ length: 50 }, (_, n) => `a${n}`)
  for (let from = 0; from < values.length; from += 10) await send(0, values.slice(from, from + 10))
  await send(1, ['compressed'], CompressionTypes.GZIP)
  const inTransactions = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true })
  t.after(() => inTransactions.disconnect())
  await inTransactions.connect()
  for (const [value, ends] of [
    ['kept', 'commit'],
    ['taken back', 'abort'],
  ] as const) {
    const transaction = await inTransactions.transaction()
    await transaction.send({
      topic,
      messages: [{ partition: 1, value, headers: { via: 'test' } }],
    })
    await transaction[ends]()
  }
  const ranges = await topicRanges(shared, [topic])
  // Two at once, which use the same connections, all of which are closed in the end.
  const [found, again] = await Promise.all([read(ranges), read(ranges)])
  assert.deepEqual(again.toSorted(), found.toSorted())
  assert.deepEqual(
    found.filter((each) => each.startsWith('a')),
    named(values),
  )
  assert.deepEqual(
    found.filter((each) => !each.startsWith('a')),
    named(['compressed', 'kept']),
  )
  assert.deepEqual(await read([{ partition: 0, low: 13, high: 15 }]), named(['a13', 'a14']))
  assert.deepEqual(await read([]), [])
})

test('what is not there yet is waited for, and no record is handled twice', async (t) => {
  const { read, send } = await aTopic(t, 1)
  await send(0, ['one', 'two'])
  const reading = read([{ partition: 0, low: 0, high: 4 }])
  await send(0, ['three'])
  await send(0, ['four'])
  assert.deepEqual(await reading, named(['one', 'two', 'three', 'four']))

  let refused = 0
  const found = await read([{ partition: 0, low: 0, high: 4 }], (value) => {
    if (value === 'two' && refused++ < 2) throw new PostriderError('registry_unavailable', 'it is away')
  })
  assert.deepEqual(found, named(['one', 'two', 'three', 'four']))
  assert.equal(refused, 3)
  await assert.rejects(
    read([{ partition: 0, low: 0, high: 4 }], () => {
      throw new Error('it cannot be handled')
    }),
    /it cannot be handled/,
  )
})

test('a loop over a range takes the same records, each once, and waits for what is not there yet', async (t) => {
  const { kafka, topic, send, shared } = await aTopic(t, 2)
  await send(0, ['a0', 'a1', 'a2', 'a3', 'a4', 'a5'])
  await send(1, ['b0', 'b1'])
  const read = async (ranges: readonly OffsetRange[], onEach: (value: string) => unknown = () => {}) => {
    const found: string[] = []
    const options = { kafka, topic, log: silentLog, fetchBytes: 100 }
    for await (const { partition, offset, value } of readSpans(ranges, options)) {
      found.push(`${partition}/${offset} ${String(value)}`)
      await onEach(String(value))
    }
    return found.toSorted()
  }
  const bounds = [
    { partition: 0, low: 1, high: 5 },
    { partition: 1, low: 0, high: 2 },
  ]
  assert.deepEqual(await read(bounds), ['0/1 a1', '0/2 a2', '0/3 a3', '0/4 a4', '1/0 b0', '1/1 b1'])
  assert.deepEqual(await read(await topicRanges(shared, [topic])), [
    ...['0/0 a0', '0/1 a1', '0/2 a2', '0/3 a3', '0/4 a4', '0/5 a5', '1/0 b0', '1/1 b1'],
  ])

  let isSent = false
  const onEach = async (value: string) => {
    if (value !== 'b1' || isSent) return
    isSent = true
    await send(1, ['b2'])
    setTimeout(() => void send(1, ['b3']), 1_000)
  }
  assert.deepEqual(await read([{ partition: 1, low: 0, high: 4 }], onEach), [
    ...['1/0 b0', '1/1 b1', '1/2 b2', '1/3 b3'],
  ])
})

test('a reading that takes long gives others their turns between the records of one answer', async (t) => {
  const { kafka, topic, send } = await aTopic(t, 1)
  await send(
    0,
    Array.from({ length: 500 }, (_, n) => `a${n}`),
  )
  const ranges = [{ partition: 0, low: 0, high: 500 }]
  const options = { kafka, topic, log: silentLog }
  for (const way of ['called', 'looped'] as const) {
    let turns = 0
    const seen = new Set<number>()
    const take = () => {
      const until = performance.now() + 0.5
      while (performance.now() < until);
      seen.add(turns)
    }
    let isOver = false
    const turn = () => {
      turns++
      if (!isOver) setImmediate(turn)
    }
    turn()
    if (way === 'called') await readBetween(ranges, { ...options, onRecord: take })
    else for await (const _ of readSpans(ranges, options)) take()
    isOver = true
    assert(seen.size > 3, `${way}: in ${seen.size} turns`)
  }
})

/** Takes connections, and never answers. */
async function silentBroker(t: TestContext) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  const config = { brokers: [`127.0.0.1:${port}`], ssl: false as const, sasl: null }
  return { kafka: createKafka({ kafka: config }, silentLog), sockets, port }
}

test('a signal ends a reading at once, also where a broker takes connections and never answers', async (t) => {
  const { kafka, sockets } = await silentBroker(t)
  const stop = new AbortController()
  const options = { kafka, topic: 'any', log: silentLog, signal: stop.signal }
  const ranges = [{ partition: 0, low: 0, high: 1 }]
  const unavailable = {
    code: 'kafka_unavailable',
    message: /^cannot read topic any: it was not read to its end in time/,
  }
  const both = [
    assert.rejects(readBetween(ranges, { ...options, onRecord: () => {} }), unavailable),
    assert.rejects(async () => {
      for await (const _ of readSpans(ranges, options)) assert.fail('a record')
    }, unavailable),
  ]
  await until(() => sockets.size > 0, 10_000, 'a connection')
  stop.abort()
  // To be connected is given up after 5 s, and a request after more.
  await Promise.race([
    Promise.all(both),
    new Promise((_, reject) => setTimeout(reject, 4_000, new Error('it goes on')).unref()),
  ])
})

test('a broker that never answers is away: it is no bug, and asking again may help', async (t) => {
  const { kafka, port } = await silentBroker(t)
  await assert.rejects(
    BrokerConnection.open(connectionFactory(kafka), { host: '127.0.0.1', port }),
    (error) => error instanceof PostriderError && error.code === 'kafka_unavailable',
  )
})

test('a topic that is missing is named, and one that comes later is read', async (t) => {
  const { topic, shared, read, send } = await aTopic(t, 1)
  await assert.rejects(topicRanges(shared, [topic, `${topic}.none`]), { name: 'KafkaJSProtocolError' })
  await send(0, ['one'])
  assert.deepEqual(await read(await topicRanges(shared, [topic])), named(['one']))
})

test('records that lie together are read once for all who ask soon, and are let go after a while', async (t) => {
  const { kafka, topic, admin, send } = await aTopic(t, 1)
  await send(0, ['a', 'b'])
  const [usual, brief] = [{}, { keptMs: 40 }].map(
    (times) => new StretchReader(kafka, topic, silentLog, times),
  )
  const read = async (reader: StretchReader, offset: number) =>
    (await reader.read(0, [offset])).map(({ value }) => String(value))
  for (const reader of [usual!, brief!]) {
    t.after(() => reader.close())
    assert.deepEqual(await read(reader, 0), ['a'])
  }
  await deleteRecords(admin, topic, [{ partition: 0, offset: 2 }])
  assert.deepEqual(await read(usual!, 1), ['b'])
  await until(async () => (await read(brief!, 1)).length === 0, 20_000, 'what was read to be let go')
})

test('what nobody has written is waited for once, however many ask for it, and what comes later is read', async (t) => {
  const { kafka, topic, shared, send } = await aTopic(t, 1)
  await send(0, ['a'])
  const open = () => {
    const reader = new StretchReader(kafka, topic, silentLog, { nothingThereMs: 3_000 })
    t.after(() => reader.close())
    return reader
  }
  let [periods, isOver] = [0, false]
  const counting = (async () => {
    // One that has just been made waits for itself.
    for (; !isOver; periods++) await open().read(0, [1_000])
  })()
  const reader = open()
  for (let offset = 2; offset < 22; offset++) assert.deepEqual(await reader.read(0, [offset]), [])
  isOver = true
  assert.ok(periods < 8, `${periods} periods for 20 reads`)
  await send(0, ['b', 'c'])
  // The end is not where it was: this is waited for again.
  const reading = reader.read(0, [5])
  await topicRanges(shared, [topic])
  await send(0, ['d', 'e', 'f'])
  assert.deepEqual(
    (await reading).map(({ value }) => String(value)),
    ['f'],
  )
  await counting
})
