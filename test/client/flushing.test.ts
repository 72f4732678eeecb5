import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { envelopeBytes } from '../../src/client/transport.ts'
import { AnalyticsError } from '../../src/client/index.ts'
import { writeCall } from '../../src/client/write-call.ts'
import { clientOf, trackSome } from '../support/calls/clients.ts'
import { collectorDouble, writeKey } from '../support/calls/collector-double.ts'
import { until } from '../support/until.ts'

const never = 2 ** 31 - 1
const sizes = (requests: { items: unknown[] }[]) => requests.map(({ items }) => items.length)

test('a batch is a POST to /v1/batch with the key, the calls and the time of sending', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector)
  const before = Date.now()
  client.track({ userId: 'u-1', event: 'Signed Up', messageId: 'm-1' })
  client.identify({ userId: 'u-1', traits: { plan: 'pro' }, messageId: 'm-2' })
  await client.flush()
  const [request] = collector.requests
  assert.equal(request!.method, 'POST')
  assert.equal(request!.path, '/v1/batch')
  assert.equal(request!.headers['content-type'], 'application/json')
  assert.deepEqual(
    request!.items.map(({ type, messageId }) => [type, messageId]),
    [
      ['track', 'm-1'],
      ['identify', 'm-2'],
    ],
  )
  assert.match(request!.sentAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(Date.parse(request!.sentAt) >= before && Date.parse(request!.sentAt) <= Date.now())
  assert.deepEqual(collector.faults, [])
})

test('an endpoint with a path is used unchanged, one without a path gets /v1/batch', async (t) => {
  const collector = await collectorDouble(t)
  for (const [path, expected] of [
    ['', '/v1/batch'],
    ['/', '/v1/batch'],
    ['?a=b', '/v1/batch?a=b'],
    ['/v1/import', '/v1/import'],
    ['/behind/a/proxy/', '/behind/a/proxy/'],
  ]) {
    const client = clientOf(t, { url: collector.url + path })
    client.identify({ userId: 'u-1' })
    await client.close()
    assert.equal(collector.requests.at(-1)!.path, expected)
  }
})

test('flushAt calls start a request at once, fewer wait for flushAfter', async (t) => {
  const collector = await collectorDouble(t)
  const byCount = clientOf(t, collector, { flushAfter: never })
  trackSome(byCount, 20)
  await collector.received(1)
  const begin = performance.now()
  const byTime = clientOf(t, collector, { flushAfter: 300 })
  trackSome(byTime, 19, 20)
  await collector.received(2)
  assert.deepEqual(sizes(collector.requests), [20, 19])
  const waitedMs = collector.requests[1]!.at - begin
  assert.ok(waitedMs >= 295, `the second after ${waitedMs} ms`)
})

test('size is an alias of flushAt', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector, { size: 3, flushAfter: never })
  trackSome(client, 3)
  await collector.received(1)
  assert.deepEqual(sizes(collector.requests), [3])
})

test('flushAt 1 sends each call at once, in its own request', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector, { flushAt: 1, flushAfter: never })
  trackSome(client, 1)
  await collector.received(1)
  const ids = trackSome(client, 5, 1)
  await collector.received(6)
  assert.deepEqual(sizes(collector.requests), [1, 1, 1, 1, 1, 1])
  assert.deepEqual([...collector.taken.keys()], ['m-0', ...ids])
})

test('calls that are queued while a request is in flight go together in the next one, in order', async (t) => {
  const collector = await collectorDouble(t)
  let release = () => {}
  collector.answer({ after: new Promise<void>((resolve) => (release = resolve)) })
  const client = clientOf(t, collector, { flushAfter: never })
  const first = trackSome(client, 20)
  await collector.received(1)
  const later = trackSome(client, 130, 20)
  release()
  await client.flush()
  assert.deepEqual(sizes(collector.requests), [20, 130])
  assert.deepEqual([...collector.taken.keys()], [...first, ...later])
})

test('500 KB start a request, no request is larger, and the size counts the bytes that are sent', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector, { flushAt: 10_000, flushAfter: never })
  // 3 bytes a character: 60 calls of 29 KB.
  const properties = { text: '€'.repeat(9_900) }
  let before = 0
  for (let index = 0; index < 60; index++) {
    client.track({ userId: 'u-1', event: 'Large', messageId: `m-${index}`, properties })
    if (index === 16) {
      await new Promise(setImmediate)
      before = collector.requests.length
    }
  }
  assert.equal(before, 0, '17 calls do not fill a request')
  await collector.received(3)
  await client.flush()
  assert.equal(collector.taken.size, 60)
  assert.deepEqual(sizes(collector.requests), [17, 17, 17, 9])
  assert.ok(collector.requests.every(({ bytes }) => bytes <= 512_000))
  assert.deepEqual(collector.faults, [])
})

test('exactly 500 KB make one request, one byte more makes two', async (t) => {
  for (const [more, requests] of [
    [0, 1],
    [1, 2],
  ] as const) {
    const collector = await collectorDouble(t)
    const client = clientOf(t, collector, { flushAt: 10_000, flushAfter: never })
    const call = (length: number) => ({
      userId: 'u',
      messageId: 'm-10',
      traits: { text: 'x'.repeat(length) },
    })
    const shortest = writeCall('identify', call(0), Date.now()).bytes
    const bytes = 512_000 - envelopeBytes - 15
    for (let index = 0; index < 16; index++) {
      const size = Math.floor(bytes / 16) + (index === 0 ? (bytes % 16) + more : 0)
      client.identify({ ...call(size - shortest), messageId: `m-${index + 10}` })
    }
    await client.flush()
    assert.equal(collector.requests.length, requests)
    assert.ok(collector.requests[0]!.bytes === 512_000 || more === 1)
    assert.deepEqual(collector.faults, [])
  }
})

test('flush waits for every earlier call, including those in flight', async (t) => {
  const collector = await collectorDouble(t)
  let release = () => {}
  collector.answer({ after: new Promise<void>((resolve) => (release = resolve)) })
  const client = clientOf(t, collector, { flushAfter: never })
  trackSome(client, 20)
  await collector.received(1)
  let flushed = false
  const flushing = client.flush().then(() => (flushed = true))
  trackSome(client, 1, 20)
  const later = client.flush()
  await new Promise(setImmediate)
  assert.equal(flushed, false)
  release()
  await flushing
  assert.ok(collector.taken.has('m-19'))
  await later
  assert.ok(collector.taken.has('m-20'))
})

test('flush of an empty client resolves at once', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector, { flushAfter: never })
  const resolvesAtOnce = async () => {
    let hasResolved = false
    void client.flush().then(() => (hasResolved = true))
    await turn()
    return hasResolved
  }
  assert.ok(await resolvesAtOnce(), 'before its first call')
  trackSome(client, 3)
  assert.equal(await resolvesAtOnce(), false, 'with calls in its queue')
  await client.flush()
  assert.ok(await resolvesAtOnce(), 'after its last call')
  assert.deepEqual(sizes(collector.requests), [3])
})

test('all requests share one connection, which is closed after close', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector)
  for (let round = 0; round < 5; round++) {
    trackSome(client, 20, round * 20)
    await client.flush()
    assert.equal(await collector.connections(), 1)
  }
  await client.close()
  // The server would not close it for being idle.
  await until(async () => (await collector.connections()) === 0, 10_000, 'the end of the connection')
})

test('a full queue rejects the call, and ready waits for space', async (t) => {
  const collector = await collectorDouble(t)
  let release = () => {}
  collector.answer({ after: new Promise<void>((resolve) => (release = resolve)) })
  const client = clientOf(t, collector, { maxQueued: 20, flushAfter: never })
  const ids = trackSome(client, 20)
  await collector.received(1)
  assert.throws(
    () => trackSome(client, 1, 20),
    (error: unknown) => error instanceof AnalyticsError && error.code === 'queue_full',
  )
  let isReady = false
  const ready = client.ready().then(() => (isReady = true))
  await new Promise(setImmediate)
  assert.equal(isReady, false)
  release()
  await ready
  ids.push(...trackSome(client, 1, 20))
  await client.flush()
  assert.deepEqual([...collector.taken.keys()], ids)
})

test('the queue is also bounded in bytes, and a full queue is sent before flushAt is reached', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector, { maxQueuedBytes: 65_536, flushAfter: never })
  const large = () => client.identify({ userId: 'u-1', traits: { text: 'x'.repeat(30_000) } })
  large()
  large()
  assert.throws(large, (error: unknown) => error instanceof AnalyticsError && error.code === 'queue_full')
  await client.ready()
  assert.equal(collector.taken.size, 2)
  large()
})

test('a caller that awaits ready never meets a full queue, however many callers wait', async (t) => {
  const collector = await collectorDouble(t)
  const client = clientOf(t, collector, { maxQueued: 25 })
  const loops = Array.from({ length: 40 }, async (_, loop) => {
    for (let call = 0; call < 10; call++) {
      await client.ready()
      // Half of those that are let in have nothing to say.
      if (call % 2 === 0) trackSome(client, 1, loop * 10 + call)
    }
  })
  await Promise.all(loops)
  await client.flush()
  assert.equal(collector.taken.size, 200)
})

test('the write key is in no error and no printable property', async (t) => {
  const { inspect } = await import('node:util')
  const client = clientOf(t, { url: 'http://127.0.0.1:1' })
  assert.ok(!inspect(client, { depth: 10, showHidden: true }).includes(writeKey))
  assert.ok(!JSON.stringify(client).includes(writeKey))
})
