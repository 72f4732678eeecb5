import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import pino from 'pino'
import { openCollectorServer } from '../../../src/adapters/http/collector-server.ts'
import type { CollectorServerOptions } from '../../../src/adapters/http/collector-server.ts'
import { refusal, success, type CollectAnswer } from '../../../src/collector/answers.ts'
import type { CollectRequest } from '../../../src/collector/collector.ts'
import type { Admission } from '../../../src/collector/collector.ts'
import { RequestBudget } from '../../../src/collector/request-budget.ts'
import { PostriderError } from '../../../src/errors.ts'
import { until } from '../../support/until.ts'
import { rawRequest, sendRaw } from '../../support/calls/raw-http.ts'
import { someSource } from '../../support/sources.ts'

interface Given extends Partial<Omit<CollectorServerOptions, 'collector'>> {
  collect?: (request: CollectRequest) => CollectAnswer | Promise<CollectAnswer>
  /** What is known of a request by its head; the source `shop` unless given. */
  admit?: () => Admission | Promise<Admission>
}

const shop = someSource('shop')

/** A server in front of a `collect` that keeps what it gets. One source alone can have half of its budget. */
async function underTest(t: TestContext, { collect, admit = () => shop, ...given }: Given = {}) {
  const got: CollectRequest[] = []
  const lines: { msg: string; level: number }[] = []
  const noRoom: (string | null)[] = []
  const budget = new RequestBudget({ calls: 20, bytes: 8_000 })
  const server = await openCollectorServer({
    port: 0,
    host: '127.0.0.1',
    budget,
    log: pino({}, { write: (line) => void lines.push(JSON.parse(line) as { msg: string; level: number }) }),
    collector: () => ({
      admit,
      sourceOf: () => shop,
      bodyRefused: (source) => void noRoom.push(source?.id ?? null),
      async collect(request) {
        got.push(request)
        return (await collect?.(request)) ?? success
      },
    }),
    ...given,
  })
  t.after(() => server.close(0))
  const send = (target: string, headers: string[] = [], body: string | Buffer = '{}', method = 'POST') =>
    sendRaw(server.port, rawRequest(target, headers, body, method))
  return { server, budget, got, lines, noRoom, send }
}

test('a request is parsed into route, text, keys and address', async (t) => {
  const { got, send } = await underTest(t)
  const basic = `Authorization: Basic ${btoa('k:')}`
  assert.equal((await send('/v1/batch', [basic], '{"batch":[]}'))?.status, 200)
  assert.equal(
    (await send('/V1/T/?writeKey=q', ['Authorization: Bearer b'], gzipSync('{"a":1}')))?.status,
    200,
  )
  assert.equal((await send('/v1/t?writeKey=a&writeKey=b'))?.status, 200)
  const data = Buffer.from('{"userId":"\u00ff>?"}').toString('base64')
  assert.equal((await send(`/v1/pixel/P?writeKey=q&data=${data}`, [], '', 'GET'))?.status, 200)
  // As a page has it by this alone: Latin-1.
  const ofPage = btoa('{"userId":"M\u00fcller"}')
  assert.equal((await send(`/v1/pixel/i?data=${ofPage}`, [], '', 'GET'))?.status, 200)
  assert.deepEqual(
    got.map(({ route, text, keys, ip }) => [
      route.type,
      route.isBatch,
      text,
      keys.basicKey,
      keys.bearerKey,
      keys.queryKey,
      ip,
    ]),
    [
      [null, true, '{"batch":[]}', 'k', null, null, '127.0.0.1'],
      ['track', false, '{"a":1}', null, 'b', 'q', '127.0.0.1'],
      ['track', false, '{}', null, null, 'b', '127.0.0.1'],
      ['page', false, '{"userId":"\u00ff>?"}', null, null, 'q', '127.0.0.1'],
      ['identify', false, '{"userId":"M\u00fcller"}', null, null, null, '127.0.0.1'],
    ],
  )
})

test('X-Forwarded-For is used only from trusted proxies', async (t) => {
  const header = ['X-Forwarded-For: 203.0.113.1', 'X-Forwarded-For: 192.0.2.9']
  const plain = await underTest(t)
  await plain.send('/v1/t', header)
  assert.equal(plain.got[0]!.ip, '127.0.0.1')
  const trusting = await underTest(t, { trustedProxies: ['127.0.0.0/8'] })
  await trusting.send('/v1/t', header)
  assert.equal(trusting.got[0]!.ip, '192.0.2.9')
})

test('the memory of a request is released once it is answered, refused or disconnected', async (t) => {
  const waiting: (() => void)[] = []
  const { server, budget, send } = await underTest(t, {
    collect: ({ reservation }) => {
      reservation.addCalls(3)
      return new Promise((resolve) => waiting.push(() => resolve(success)))
    },
  })
  const answered = send('/v1/track', [], `{"a":"${'x'.repeat(1_000)}"}`)
  await until(() => waiting.length === 1)
  assert.deepEqual([budget.calls, budget.bytes], [3, 1_008])
  waiting[0]!()
  assert.equal((await answered)?.status, 200)
  await until(() => budget.calls === 0 && budget.bytes === 0)

  const refused = await send('/v1/track', [], 'x'.repeat(4_001))
  assert.equal(refused?.status, 429)
  assert.equal(refused.headers['retry-after'], '1')
  await until(() => budget.bytes === 0)

  const head = 'POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n'
  const socket = connect(server.port, '127.0.0.1')
  socket.write(`${head}${'x'.repeat(500)}`)
  await until(() => budget.bytes === 500)
  socket.resetAndDestroy()
  await until(() => budget.bytes === 0)

  // Its bytes are still reserved: else a client that sends and disconnects would not be bounded.
  const gone = connect(server.port, '127.0.0.1')
  gone.write(`${head}${' '.repeat(1_000)}`)
  await until(() => waiting.length === 2)
  gone.resetAndDestroy()
  assert.equal((await send('/v1/nothing'))?.status, 404)
  assert.deepEqual([budget.calls, budget.bytes], [3, 1_000])
  waiting[1]!()
  await until(() => budget.calls === 0 && budget.bytes === 0)
})

test('a body is what was sent, in whatever chunks it comes', async (t) => {
  const { server, got } = await underTest(t)
  const body = JSON.stringify(Array.from({ length: 700 }, (_, number) => number))
  for (const sizes of [[1], [1, 900, 2], [900, 1], [2_000]]) {
    let chunks = ''
    for (let at = 0, n = 0; at < body.length; n++) {
      const chunk = body.slice(at, at + sizes[n % sizes.length]!)
      chunks += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
      at += chunk.length
    }
    const head = 'POST /v1/track HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
    assert.equal((await sendRaw(server.port, `${head}${chunks}0\r\n\r\n`))?.status, 200)
    assert.equal(got.at(-1)!.text, body, sizes.join())
  }
})

test('a sender that leaves while its source is looked up takes no budget', async (t) => {
  const lookUps: (() => void)[] = []
  const { server, budget, got, send } = await underTest(t, {
    admit: () => new Promise((resolve) => lookUps.push(() => resolve(shop))),
  })
  const socket = connect(server.port, '127.0.0.1')
  socket.write('POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n{')
  await until(() => lookUps.length === 1)
  socket.resetAndDestroy()
  // Its connection has ended before one that was opened later is answered.
  assert.equal((await send('/v1/nothing'))?.status, 404)
  lookUps[0]!()
  assert.equal((await send('/v1/nothing'))?.status, 404)
  assert.deepEqual([budget.requests, budget.bytes, got.length], [0, 0, 0])
})

test('a body that would not fit the budget is refused by its Content-Length, and a head without a body takes no budget', async (t) => {
  const waiting: (() => void)[] = []
  const { server, budget, send } = await underTest(t, {
    collect: () => new Promise((resolve) => waiting.push(() => resolve(success))),
  })
  const head = (length: number) => `POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`
  // Announces a body that would fill the budget, and sends nothing.
  const idle = connect(server.port, '127.0.0.1')
  t.after(() => idle.destroy())
  idle.write(head(4_000))
  const first = send('/v1/track', [], 'x'.repeat(3_000))
  await until(() => waiting.length === 1)
  assert.equal(budget.bytes, 3_000)
  const refused = connect(server.port, '127.0.0.1')
  t.after(() => refused.destroy())
  refused.write(head(1_001))
  const [answer] = (await once(refused, 'data')) as [Buffer]
  assert.match(answer.toString(), /^HTTP\/1\.1 429 /)
  // The length of a chunked body is not known before it has arrived.
  const inPieces = `POST /v1/track HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n${'x'.repeat(1_001)}`
  const refusedLater = await sendRaw(server.port, `${inPieces}\r\n0\r\n\r\n`)
  assert.equal(refusedLater?.status, 429)
  const fits = send('/v1/track', [], 'x'.repeat(1_000))
  await until(() => waiting.length === 2)
  for (const answerNow of waiting) answerNow()
  assert.deepEqual([(await first)?.status, (await fits)?.status], [200, 200])
})

test('a client that does not read its answer keeps no budget and is disconnected in time', async (t) => {
  // More than all buffers between the two can hold.
  const large = { ...success, body: 'x'.repeat(32 << 20) }
  const unread = async (answerMs: number) => {
    const { server, budget, got } = await underTest(t, {
      answerMs,
      collect: ({ reservation }) => {
        reservation.addCalls(1)
        return large
      },
    })
    const socket = connect(server.port, '127.0.0.1').pause()
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    const request = rawRequest('/v1/track', [], '{}')
    socket.write(request)
    await until(() => got.length === 1)
    return { budget, socket, request }
  }
  const patient = await unread(600_000)
  await until(() => patient.budget.calls === 0 && patient.budget.bytes === 0)

  const { socket, request } = await unread(1_000)
  // A sender that does not read learns of the end when it writes.
  const timer = setInterval(() => socket.write(request), 100)
  t.after(() => clearInterval(timer))
  await until(() => socket.destroyed, 30_000, 'a connection that is closed')
  assert.ok(!patient.socket.destroyed)
})

/** What comes back over a connection, answer by answer. */
function pipelined(t: TestContext, port: number) {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  t.after(() => socket.destroy())
  let text = ''
  let isClosed = false
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  socket.on('close', () => (isClosed = true))
  const answers = () => text.split(/(?=HTTP\/1\.1 )/)
  return {
    socket,
    numbers: () => [...text.matchAll(/"number":"(\w+)"/g)].map(([, number]) => number),
    lastAnswer: () => answers().at(-1)!,
    isClosed: () => isClosed,
  }
}

/** Of `count` requests, each with its number and bytes that fill it up. */
const numbered = (from: number, count: number, fill = 0): Buffer =>
  Buffer.concat(
    Array.from({ length: count }, (_, index) =>
      rawRequest('/v1/track', [], `${from + index} ${'x'.repeat(fill)}`),
    ),
  )

const numberIn = (text: string): string => text.split(' ')[0]!
const answerTo = (text: string) => ({ ...success, body: JSON.stringify({ number: numberIn(text) }) })
const upTo = (count: number): string[] => Array.from({ length: count }, (_, number) => String(number))

test('requests sent ahead over one connection begin one after the other, and are all answered in order', async (t) => {
  const waiting: (() => void)[] = []
  const { server, got } = await underTest(t, {
    collect: ({ text }) => new Promise((resolve) => waiting.push(() => resolve(answerTo(text)))),
  })
  const { socket, numbers } = pipelined(t, server.port)
  const last = numbered(3, 1, 3_000)
  socket.write(Buffer.concat([numbered(0, 3), last.subarray(0, 500)]))
  for (let number = 0; number < 4; number++) {
    await until(() => waiting.length > 0)
    // What another connection sent later is there: so would be what this one sent, were it begun.
    const other = pipelined(t, server.port)
    other.socket.write(numbered(100 + number, 1))
    await until(() => waiting.length === 2)
    for (const answer of waiting.splice(0)) answer()
    await until(() => numbers().length === number + 1 && other.numbers().length === 1)
    if (number === 2) socket.write(last.subarray(500))
  }
  assert.deepEqual(numbers(), upTo(4))
  assert.deepEqual(
    got.map(({ text }) => numberIn(text)),
    ['0', '100', '1', '101', '2', '102', '3', '103'],
  )
  // It is open for more.
  socket.write(numbered(4, 1))
  await until(() => waiting.length === 1)
  waiting[0]!()
  await until(() => numbers().length === 5)
})

test('a connection that sends on and on is read no faster than it is answered', async (t) => {
  const { server, got } = await underTest(t, { collect: async ({ text }) => answerTo(text) })
  const { socket, numbers, isClosed } = pipelined(t, server.port)
  socket.write(numbered(0, 300, 3_900))
  await until(() => numbers().length === 300, 20_000)
  assert.deepEqual(numbers(), upTo(300))
  assert.equal(got.length, 300)
  assert.equal(isClosed(), false)
})

test('of more requests than may wait those that do are answered, and the connection ends', async (t) => {
  const waiting: (() => void)[] = []
  let isHolding = true
  const { server, got } = await underTest(t, {
    collect: ({ text }) =>
      isHolding
        ? new Promise((resolve) => waiting.push(() => resolve(answerTo(text))))
        : Promise.resolve(answerTo(text)),
  })
  const { socket, numbers, lastAnswer, isClosed } = pipelined(t, server.port)
  socket.write(numbered(0, 200))
  await until(() => waiting.length === 1)
  assert.equal(got.length, 1)
  isHolding = false
  waiting[0]!()
  await until(isClosed)
  assert.deepEqual(numbers(), upTo(33))
  assert.equal(got.length, 33)
  assert.match(lastAnswer(), /^connection: close\r$/im)
})

test('connections that send ahead delay others by one request each', async (t) => {
  let begun = 0
  const { server } = await underTest(t, {
    budget: new RequestBudget({ calls: 1_000, bytes: 1 << 20 }),
    collect: async ({ text }) => {
      if (text.startsWith('victim')) return success
      begun++
      return answerTo(text)
    },
  })
  const senders = Array.from({ length: 10 }, () => pipelined(t, server.port))
  const isOver = () => begun === senders.length * 200
  for (const { socket } of senders) socket.write(numbered(0, 200, 2_200))
  let victims = 0
  while (!isOver()) {
    const before = begun
    const answer = await sendRaw(server.port, rawRequest('/v1/track', [], 'victim'))
    assert.equal(answer?.status, 200)
    victims++
    // A few turns of the event loop for its connection, its request and its answer.
    if (!isOver()) assert.ok(begun - before <= 20 * senders.length, `${begun - before} requests of others`)
  }
  t.diagnostic(`${victims} requests beside ${begun}`)
  assert.ok(victims > 0)
  for (const { numbers } of senders) {
    await until(() => numbers().length === 200, 20_000)
    assert.deepEqual(numbers(), upTo(200))
  }
})

test('the time limit of an answer to a request that waited starts when it is made', async (t) => {
  // Time passes only where this test lets it: on a busy machine a sender that reads may take as long as one that does not.
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const waiting: (() => void)[] = []
  // More than all buffers between the two can hold.
  const large = { ...success, body: JSON.stringify({ a: 'x'.repeat(8 << 20) }) }
  const answerMs = 500
  const { server, got } = await underTest(t, {
    answerMs,
    collect: ({ text }) =>
      text === '1' ? new Promise((resolve) => waiting.push(() => resolve(success))) : large,
  })
  const opened = () => {
    const socket = connect(server.port, '127.0.0.1')
    socket.on('error', () => {})
    t.after(() => socket.destroy())
    socket.write(Buffer.concat(['1', '2', '2'].map((text) => rawRequest('/v1/track', [], text))))
    return socket
  }
  let bytes = 0
  const reads = opened().on('data', (chunk: Buffer) => (bytes += chunk.length))
  const doesNot = opened().pause()
  await until(() => waiting.length === 2)
  t.mock.timers.tick(2 * answerMs)
  assert.equal(got.length, 2)
  for (const answer of waiting) answer()
  // The third of the sender that does not read waits for its second.
  await until(() => bytes > 16 << 20 && got.length === 5)
  t.mock.timers.tick(answerMs)
  assert.ok(!reads.destroyed)
  // A sender that does not read learns of the end when it writes.
  const timer = setInterval(() => doesNot.write(rawRequest('/v1/track', [], '2')), 100)
  t.after(() => clearInterval(timer))
  await until(() => doesNot.destroyed, 30_000, 'a connection that is closed')
})

test(
  'a body that trickles is cut off after a grace period, and one that arrives steadily is not',
  { timeout: 90_000 },
  async (t) => {
    // It is not for the time that the whole of it takes.
    const { server, budget } = await underTest(t, { requestMs: 300_000 })
    const body = JSON.stringify({ a: 'x'.repeat(3_000) })
    const sentIn = (bytes: number, everyMs: number) => {
      const request = rawRequest('/v1/track', [], body)
      const socket = connect(server.port, '127.0.0.1')
      socket.on('error', () => {})
      t.after(() => socket.destroy())
      let at = request.length - body.length + 10
      socket.write(request.subarray(0, at))
      const timer = setInterval(() => {
        socket.write(request.subarray(at, (at += bytes)))
        if (at >= request.length) clearInterval(timer)
      }, everyMs)
      t.after(() => clearInterval(timer))
      return new Promise<number>((resolve) => {
        socket.once('data', (chunk: Buffer) => resolve(Number(chunk.toString().split(' ')[1])))
      })
    }
    const dripping = sentIn(1, 250)
    // 2.2 KB a second, for longer than the grace.
    assert.equal(await sentIn(110, 50), 200)
    assert.equal(await dripping, 503)
    await until(() => budget.bytes === 0)
  },
)

test('a bug is answered 500 and logged without the request body', async (t) => {
  const { lines, send } = await underTest(t, {
    collect: () => Promise.reject(new Error('a bug')),
  })
  const answer = await send('/v1/t?writeKey=secret-key', [], '{"userId":"private"}')
  assert.equal(answer?.status, 500)
  assert.equal((JSON.parse(answer.body) as { code: string }).code, 'internal_error')
  const text = JSON.stringify(lines)
  assert.match(text, /a bug/)
  assert.doesNotMatch(text, /secret-key|private/)
})

test('answers carry their status, Retry-After and, for pages, the allowed origin; only an accepted pixel is answered with a picture', async (t) => {
  const { send } = await underTest(t, {
    collect: async () => refusal(503, 'unavailable', 'later', 7),
  })
  const origin = 'Origin: https://shop.example'
  const answer = await send('/v1/track', [origin])
  assert.deepEqual(
    [answer?.status, answer?.headers['retry-after'], answer?.headers['access-control-allow-origin']],
    [503, '7', 'https://shop.example'],
  )
  const pixel = await send('/v1/pixel/page?data=e30=', [origin], '', 'GET')
  assert.equal(pixel?.status, 503)
  assert.match(pixel.headers['content-type']!, /^application\/json/)
  const preflight = await send('/v1/track', [origin], '', 'OPTIONS')
  assert.equal(preflight?.status, 204)
  const unknown = await send('/v1/pixel/nothing', [], '', 'GET')
  assert.equal(unknown?.status, 404)
})

test('closing answers requests in flight, asks clients to close their connections, and accepts no new ones', async (t) => {
  const answering = Promise.withResolvers<void>()
  let asked = 0
  const { server } = await underTest(t, {
    async collect() {
      asked++
      await answering.promise
      return success
    },
  })
  const socket = connect(server.port, '127.0.0.1')
  let text = ''
  socket.on('data', (chunk) => (text += chunk.toString()))
  socket.write(rawRequest('/v1/track', [], '{}'))
  await until(() => asked === 1)
  const closed = server.close(30_000)
  assert.equal(server.close(0), closed)
  await until(async () => (await sendRaw(server.port, rawRequest('/v1/track', [], '{}'))) === null)
  answering.resolve()
  await once(socket, 'close')
  assert.match(text, /^HTTP\/1.1 200 .*connection: close.*\{"success":true\}$/is)
  await closed
})

test('closing cuts off requests that are not answered within the grace period', async (t) => {
  let asked = 0
  const { server } = await underTest(t, {
    collect: () => {
      asked++
      return new Promise(() => {})
    },
  })
  const answer = sendRaw(server.port, rawRequest('/v1/track', [], '{}'))
  await until(() => asked === 1)
  await server.close(50)
  assert.equal(await answer, null)
})

test('the error for a port that is in use names the port’s setting', async (t) => {
  const { server } = await underTest(t)
  await assert.rejects(underTest(t, { port: server.port }), (error) => {
    assert.ok(error instanceof PostriderError)
    assert.equal(error.code, 'local')
    assert.match(error.message, new RegExp(`COLLECTOR_PORT is ${server.port}, a port that is taken`))
    return true
  })
})

test('the error for an address that this machine does not have names the address’s setting', async (t) => {
  await assert.rejects(underTest(t, { host: '192.0.2.1' }), (error) => {
    assert.ok(error instanceof PostriderError)
    assert.match(error.message, /^COLLECTOR_HOST is 192\.0\.2\.1, which is no address of this machine/)
    return true
  })
})
