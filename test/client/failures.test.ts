import assert from 'node:assert/strict'
import http from 'node:http'
import { test } from 'node:test'
import type { Transport } from '../../src/client/index.ts'
import { clientOf, trackSome } from '../support/calls/clients.ts'
import { collectorDouble, writeKey, type Answer } from '../support/calls/collector-double.ts'
import { freePort } from '../../src/local/ports.ts'
import { until } from '../support/until.ts'

const weathers: [string, Answer][] = [
  ['a 500', { status: 500 }],
  ['a 503', { status: 503 }],
  ['a 429', { status: 429 }],
  ['a connection that ends', 'reset'],
  ['an answer that got lost', 'lose_answer'],
  ['a 200 from something else', { status: 200, body: '<html>Welcome</html>' }],
  ['a 200 with nothing in it', { status: 200, body: '' }],
  ['an endless answer', { status: 200, body: 'x'.repeat(2_000_000) }],
]

for (const [name, answer] of weathers) {
  test(`after ${name} the same calls are sent again and arrive once`, async (t) => {
    const collector = await collectorDouble(t)
    collector.answer(answer, answer, answer)
    const client = clientOf(t, collector)
    const ids = trackSome(client, 20)
    await client.flush()
    assert.deepEqual([...collector.taken.keys()], ids)
    assert.equal(collector.requests.length, 4)
    for (const { items } of collector.requests)
      assert.deepEqual(
        items.map(({ messageId }) => messageId),
        ids,
      )
    assert.deepEqual(client.failures, [])
    assert.deepEqual(collector.faults, [])
  })
}

test('sentAt is the time of the attempt, so that clock correction is right after a retry', async (t) => {
  const collector = await collectorDouble(t)
  collector.answer({ status: 503 })
  const client = clientOf(t, collector, { initialBackoff: 100, maxBackoff: 100 })
  trackSome(client, 1)
  await client.flush()
  const [first, second] = collector.requests.map(({ sentAt }) => Date.parse(sentAt))
  assert.ok(second! - first! >= 45, `${second! - first!} ms later`)
})

test('Retry-After is honoured', async (t) => {
  const collector = await collectorDouble(t)
  collector.answer({ status: 429, headers: { 'Retry-After': '1' } })
  const client = clientOf(t, collector)
  trackSome(client, 20)
  await client.flush()
  const [first, second] = collector.requests.map(({ at }) => at)
  assert.ok(second! - first! >= 990, `${second! - first!} ms later`)
})

test('an attempt without an answer ends at the timeout, and the next one delivers', async (t) => {
  const collector = await collectorDouble(t)
  collector.answer('hang')
  // The next attempt gets its answer within that, too, also on a busy machine.
  const client = clientOf(t, collector, { timeout: 2_000 })
  const ids = trackSome(client, 20)
  await client.flush()
  assert.deepEqual([...collector.taken.keys()], ids)
  assert.equal(collector.requests.length, 2)
})

test('a collector that is down for a while gets every call later', async (t) => {
  const port = await freePort()
  const client = clientOf(t, { url: `http://127.0.0.1:${port}` }, { retries: Infinity, maxBackoff: 50 })
  const requests = t.mock.method(http, 'request')
  const ids = trackSome(client, 50)
  const flushed = client.flush()
  await until(() => requests.mock.callCount() >= 4, 10_000, 'three failed attempts')
  const collector = await collectorDouble(t, port)
  await flushed
  assert.deepEqual([...collector.taken.keys()], ids)
  assert.deepEqual(client.failures, [])
})

test('calls that fail to the last attempt are reported in onError with the reason, and the others go on', async (t) => {
  const collector = await collectorDouble(t)
  collector.answer({ status: 503 }, { status: 500, body: '{"code":"c","message":"the last"}' })
  const client = clientOf(t, collector, { retries: 1 })
  const ids = trackSome(client, 20)
  await client.flush()
  const [failure] = client.failures
  assert.equal(failure!.code, 'retries_exhausted')
  assert.match(failure!.message, /20 calls not delivered: HTTP 500 c: the last, at the last of 2 attempts/)
  assert.deepEqual(client.named(), ids)
  const [call] = failure!.calls
  assert.equal(call!.type, 'track')
  assert.equal((JSON.parse(call!.json) as { event: string }).event, 'Order Completed')
  assert.match(call!.reason, /500/)
  const next = trackSome(client, 3, 20)
  await client.flush()
  assert.deepEqual([...collector.taken.keys()], next)
})

test('a refusal is final: it gets one attempt and reports every call', async (t) => {
  for (const status of [400, 401, 403, 413, 302, 501]) {
    const collector = await collectorDouble(t)
    collector.always = { status, headers: { Location: collector.url } }
    const client = clientOf(t, collector)
    const ids = trackSome(client, 20)
    await client.flush()
    assert.equal(client.failures[0]!.code, 'refused')
    assert.match(client.failures[0]!.message, new RegExp(String(status)))
    assert.deepEqual(client.named(), ids)
    assert.equal(collector.requests.length, 1)
  }
})

for (const status of [200, 400] as const) {
  test(`calls rejected with ${status} are reported with their own reasons, and the others arrive`, async (t) => {
    const collector = await collectorDouble(t)
    collector.rejectedEvents.add('Bad')
    collector.rejectedStatus = status
    const client = clientOf(t, collector)
    for (let index = 0; index < 20; index++)
      client.track({ userId: 'u', event: index % 7 === 3 ? 'Bad' : 'Good', messageId: `m-${index}` })
    await client.flush()
    assert.deepEqual(client.named(), ['m-3', 'm-10', 'm-17'])
    assert.equal(client.failures[0]!.code, 'rejected')
    assert.equal(client.failures[0]!.calls[1]!.reason, 'event_not_string: event must be a string')
    assert.equal(collector.taken.size, 17)
  })
}

test('the write key is redacted if the collector’s answer repeats it', async (t) => {
  const collector = await collectorDouble(t)
  collector.always = { status: 401, body: JSON.stringify({ message: `no source has the key ${writeKey}` }) }
  const client = clientOf(t, collector)
  trackSome(client, 1)
  await client.flush()
  assert.match(client.failures[0]!.message, /no source has the key …/)
  assert.ok(!JSON.stringify(client.failures).includes(writeKey))
})

test('an onError that throws or rejects does not stop the client', async (t) => {
  const printed = t.mock.method(console, 'error', () => {})
  for (const onError of [
    () => {
      throw new Error('thrown')
    },
    async () => {
      throw new Error('rejected')
    },
  ]) {
    const collector = await collectorDouble(t)
    collector.answer({ status: 401 })
    const client = clientOf(t, collector, { onError })
    trackSome(client, 20)
    await client.flush()
    trackSome(client, 20, 20)
    await client.flush()
    assert.equal(collector.taken.size, 20)
    await client.close()
  }
  assert.equal(printed.mock.callCount(), 2)
})

test('onError may call the client', async (t) => {
  const collector = await collectorDouble(t)
  collector.answer({ status: 401 })
  const client = clientOf(t, collector, {
    onError: (error) => {
      client.track({ userId: 'ops', event: 'Calls Lost', properties: { count: error.calls.length } })
      void client.flush()
    },
  })
  trackSome(client, 20)
  await client.flush()
  await client.flush()
  assert.deepEqual(
    [...collector.taken.values()].map(({ event }) => event),
    ['Calls Lost'],
  )
})

test('without onError, a failure is one line on stderr', async (t) => {
  const lines: unknown[] = []
  t.mock.method(console, 'error', (line: unknown) => void lines.push(line))
  const collector = await collectorDouble(t)
  collector.always = { status: 401 }
  const client = clientOf(t, collector, { onError: undefined })
  trackSome(client, 20)
  await client.flush()
  assert.equal(lines.length, 1)
  assert.match(String(lines[0]), /^postrider: 20 calls not delivered: HTTP 401 /)
})

test('a transport that throws, rejects or returns nonsense is treated as temporarily unavailable', async (t) => {
  const results: (() => unknown)[] = [
    () => {
      throw new Error('thrown')
    },
    () => Promise.reject(new Error('rejected')),
    () => undefined,
    () => ({ kind: 'nonsense' }),
    () => ({ kind: 'accepted', rejected: [] }),
  ]
  let sends = 0
  const transport = {
    name: 'own',
    send: () => results[sends++]!(),
    close: () => Promise.reject(new Error('close failed')),
  } as unknown as Transport
  const client = clientOf(t, { url: '' }, { endpoint: undefined, transport })
  trackSome(client, 20)
  await client.flush()
  assert.equal(sends, 5)
  assert.deepEqual(client.failures, [])
  assert.deepEqual(await client.close(), { undelivered: [] })
})

test('a transport that rejects calls that it was not given ends in an error, not in a loop', async (t) => {
  const transport: Transport = {
    name: 'own',
    send: async () => ({ kind: 'rejected', rejected: [{ index: 99, code: 'c', message: 'm' }] }),
    close: async () => {},
  }
  const client = clientOf(t, { url: '' }, { endpoint: undefined, transport })
  const ids = trackSome(client, 20)
  await client.flush()
  assert.deepEqual(client.named(), ids)
})
