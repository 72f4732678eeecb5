import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { test, type TestContext } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import pino from 'pino'
import { z } from 'zod'
import { deadLetterReasons } from '../../../src/core/delivery/delivery.ts'
import { paced } from '../../../src/console/bodies.ts'
import { openConsoleServer } from '../../../src/console/server.ts'
import { apiErrorCodes, RequestRefused } from '../../../src/operators/check.ts'
import { operation, type Operation, longReads } from '../../../src/operators/operation.ts'
import { operations } from '../../../src/operators/operations.ts'
import type { ConsoleServices } from '../../../src/operators/services.ts'
import { sendRaw } from '../../support/calls/raw-http.ts'
import { until } from '../../support/until.ts'

const token = 'a-token-that-nobody-guesses-0123456789'
const auth = { authorization: `Bearer ${token}` }

interface Refused {
  code: string
  message: string
  fields: { field: string; message: string }[]
}

/** A console without anything behind it: what it refuses, it refuses before. */
async function underTest(t: TestContext, given: { operations?: readonly Operation[]; idleMs?: number } = {}) {
  const lines: Record<string, unknown>[] = []
  const services = { settings: { catchUp: async () => {} } } as unknown as ConsoleServices
  const server = await openConsoleServer({
    port: 0,
    host: '127.0.0.1',
    token,
    version: '1',
    operations,
    services: () => (given.operations ? services : null),
    counts: { request: () => {} },
    log: pino({}, { write: (line) => void lines.push(JSON.parse(line) as Record<string, unknown>) }),
    ...given,
  })
  t.after(() => server.close(0))
  const url = `http://127.0.0.1:${server.port}/api/v1`
  const refused = async (method: string, path: string, json?: unknown) => {
    const response = await fetch(url + path, {
      method,
      headers: { ...auth, ...(json !== undefined && { 'content-type': 'application/json' }) },
      ...(json !== undefined && { body: JSON.stringify(json) }),
    })
    return { status: response.status, ...((await response.json()) as Refused) }
  }
  return { port: server.port, url, lines, refused }
}

const crm = { id: 'crm', name: 'CRM', sourceIds: ['shop'], urls: [{ url: 'https://example.com/' }] }
const many = <T>(length: number, made: (n: number) => T): T[] => Array.from({ length }, (_, n) => made(n))

/** Needs: the token. Bounded: the checks of lists that are too long, and the faults that the answer names. */
test('lists that are too long are refused before their items are checked', async (t) => {
  const { refused } = await underTest(t)
  const cases: [path: string, json: unknown, field: string, message: string][] = [
    [
      '/deletions',
      { userIds: many(4_000_000, () => 1) },
      'userIds',
      'has 4000000 entries, at most 5000 are allowed',
    ],
    [
      '/destinations',
      { ...crm, urls: many(60_000, (n) => ({ url: `https://example.com/${n}` })) },
      'urls',
      'has 60000 entries, at most 5 are allowed',
    ],
    [
      '/destinations',
      {
        ...crm,
        urls: [
          { url: 'https://example.com/', headers: Object.fromEntries(many(60_000, (n) => [`h${n}`, 'v'])) },
        ],
      },
      'urls.0.headers',
      'has 60000 entries, at most 20 are allowed',
    ],
    [
      '/destinations',
      { ...crm, sourceIds: many(60_000, (n) => `s${n}`) },
      'sourceIds',
      'has 60000 entries, at most 1000 are allowed',
    ],
    [
      '/destinations',
      { ...crm, events: many(60_000, (n) => `e${n}`) },
      'events',
      'has 60000 entries, at most 100 are allowed',
    ],
    [
      '/destinations',
      { ...crm, types: many(60_000, () => 'track') },
      'types',
      'has 60000 entries, at most 7 are allowed',
    ],
    [
      '/replays',
      // Beside the reasons there is one for records that cannot be read.
      { deadLetters: { reason: many(60_000, () => 'gone') } },
      'deadLetters.reason',
      `has 60000 entries, at most ${deadLetterReasons.length + 1} are allowed`,
    ],
  ]
  for (const [path, json, field, message] of cases) {
    const answer = await refused('POST', path, json)
    assert.deepEqual([answer.status, answer.fields], [400, [{ field, message }]], path)
  }
})

test('every list that the API accepts has a limit', () => {
  for (const { id, body, query } of operations)
    for (const schema of [body, query])
      if (schema)
        for (const list of listsIn(z.toJSONSchema(schema, { io: 'input' })))
          assert.ok(Number.isInteger(list.maxItems ?? list.maxProperties), `${id}: ${JSON.stringify(list)}`)
})

/** Each list and record within a JSON Schema. */
function* listsIn(part: unknown): Generator<Record<string, unknown>> {
  if (typeof part !== 'object' || part === null) return
  const schema = part as Record<string, unknown>
  if (schema.type === 'array' || typeof schema.additionalProperties === 'object') yield schema
  for (const inner of Object.values(schema)) yield* listsIn(inner)
}

/** Needs: the token. Bounded: the answer. */
test('of many faults in a request, the first hundred are listed and the others counted', async (t) => {
  const { refused } = await underTest(t)
  for (const json of [
    { userIds: many(5_000, () => 7) },
    { userIds: ['u'], ...Object.fromEntries(many(5_000, (n) => [`f${n}`, 1])) },
  ]) {
    const { status, fields, message } = await refused('POST', '/deletions', json)
    assert.deepEqual([status, fields.length], [400, 100])
    assert.match(message, /; and 4900 more$/)
  }
})

/** Needs: the token. */
test('parameters named like properties of Object.prototype are unknown parameters', async (t) => {
  const { refused } = await underTest(t)
  for (const name of ['__proto__', 'constructor', 'toString', 'hasOwnProperty'])
    for (const path of ['/dead-letters', '/sources', '/sources/shop']) {
      const { status, fields } = await refused('GET', `${path}?${name}=1`)
      assert.deepEqual([status, fields.map(({ field }) => field)], [400, [name]], path)
    }
})

/** Needs: a token of any role. Bounded: reads of whole topics, streams, lists, and replays of dead letters. */
test('of requests that share a limit one too many is refused at once, and gets its turn when another has ended', async (t) => {
  const limit = { max: 2, busy: 'two are running; try again when one has ended' }
  const ends: (() => void)[] = []
  const reading = (id: string) =>
    operation({
      id,
      route: `GET /${id}`,
      command: null,
      summary: 'Reads',
      success: { status: 200, description: 'Read.', schema: z.object({}) },
      limit,
      handle: ({ gone }) => {
        const { promise, resolve } = Promise.withResolvers<void>()
        gone.addEventListener('abort', () => resolve())
        ends.push(resolve)
        return promise.then(() => ({ status: 200, body: {} }))
      },
    })
  const { url, refused } = await underTest(t, { operations: [reading('one'), reading('two')] })
  const leaving = new AbortController()
  const first = fetch(`${url}/one`, { headers: auth, signal: leaving.signal })
  const left = assert.rejects(first)
  const second = refused('GET', '/two')
  await until(() => ends.length === 2)
  const third = await fetch(`${url}/two`, { headers: auth })
  assert.deepEqual([third.status, third.headers.get('retry-after')], [429, '5'])
  assert.deepEqual(await third.json(), { code: 'busy', message: limit.busy, fields: [] })
  assert.equal(ends.length, 2)

  // One whose sender goes away has ended, too.
  leaving.abort()
  await left
  // Asked again only once it was refused: of two on their way, the later one would have a place that nobody ends.
  let status: number | null = 429
  await until(() => {
    if (status === 429) {
      status = null
      void fetch(`${url}/one`, { headers: auth }).then((response) => (status = response.status))
    }
    return ends.length === 3
  })
  for (const end of ends) end()
  assert.equal((await second).status, 200)
  await until(() => status === 200)
})

/** Needs: a token of any role. A new operation that reads a topic from its beginning belongs here. */
test('operations that read a whole topic share four places', () => {
  const limitOf = (id: string, body: unknown = undefined) => {
    const { limit } = operations.find((each) => each.id === id)!
    return typeof limit === 'function' ? limit(body) : limit
  }
  for (const id of ['listSettingsHistory', 'groupDeadLetters', 'showDeadLetter', 'dryRunReplay'])
    assert.equal(limitOf(id), longReads, id)
  assert.equal(longReads.max, 4)
  // By ids of deliveries, they are looked for.
  assert.equal(limitOf('startReplay', { deadLetters: { ids: ['m-1:crm'] } }), longReads)
  assert.equal(limitOf('startReplay', { deadLetters: { all: true } }), null)
  assert.equal(limitOf('startReplay', { destinationId: 'crm' }), null)
})

test('a bug is logged, whether the request had a body or not', async (t) => {
  const failing = (method: 'GET' | 'POST', path: `/${string}`) =>
    operation({
      id: path.slice(1),
      route: `${method} ${path}`,
      command: null,
      summary: 'Fails',
      ...(method === 'POST' && { body: z.strictObject({ a: z.string() }) }),
      success: { status: 200, description: 'Never.', schema: z.object({}) },
      handle: async () => {
        throw new Error(`a bug at ${path}`)
      },
    })
  const { refused, lines } = await underTest(t, {
    operations: [failing('GET', '/one'), failing('POST', '/two')],
  })
  assert.equal((await refused('GET', '/one')).status, 500)
  assert.equal((await refused('POST', '/two', { a: 'private' })).status, 500)
  const bugs = lines.filter(({ msg }) => msg === 'a request failed by a bug')
  assert.deepEqual(
    bugs.map(({ err }) => (err as Error).message),
    ['a bug at /one', 'a bug at /two'],
  )
  assert.ok(!JSON.stringify(lines).includes('private'))
})

/** Needs: to reach the console. Bounded: lines of the log, answers a second; the right token is not slowed. */
test('many wrong tokens cause few log lines, and their answers are delayed', async (t) => {
  const { url, lines } = await underTest(t)
  const guess = async (n: number) => {
    const begin = performance.now()
    const response = await fetch(`${url}/sources`, { headers: { authorization: `Bearer guess-${n}` } }).catch(
      () => null,
    )
    return { status: response?.status ?? null, ms: performance.now() - begin }
  }
  for (let n = 0; n < 10; n++) assert.equal((await guess(n)).status, 401)
  const begin = performance.now()
  const guesses = Promise.all(many(300, guess))
  // 503: there is nothing behind it.
  assert.equal((await fetch(`${url}/sources`, { headers: auth })).status, 503)
  const answers = await guesses
  const answered = answers.filter(({ status }) => status === 401)
  // A hundred wait at a time, a second each; on a busy machine the guesses take longer to come.
  const rounds = 1 + Math.floor((performance.now() - begin) / 990)
  assert.ok(
    answered.length >= 100 && answered.length <= 100 * rounds,
    `${answered.length} in ${rounds} rounds`,
  )
  // Timers may come a millisecond early.
  for (const { ms } of answered) assert.ok(ms > 990, `${ms} ms`)
  assert.equal(answers.filter(({ status }) => status === null).length, 300 - answered.length)
  const about = lines.filter(({ msg }) => String(msg).includes('without the right token'))
  assert.equal(about.length, 10)
  assert.ok(!JSON.stringify(lines).includes('guess-'))
})

test('a request that is not HTTP, or whose head is too large, gets an error code of the document', async (t) => {
  const { port } = await underTest(t)
  for (const [bytes, status, code] of [
    ['hello\r\n\r\n', 400, 'invalid_http'],
    [`GET /api/v1/sources HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, 431, 'head_too_large'],
  ] as const) {
    const answer = await sendRaw(port, bytes)
    assert.equal(answer?.status, status)
    assert.equal((JSON.parse(answer.body) as Refused).code, code)
    assert.ok((apiErrorCodes as string[]).includes(code))
  }
})

/** Needs: the token. Bounded: the time that a body takes. */
test('a JSON body that trickles is cut off in time and changes nothing', async (t) => {
  const { port } = await underTest(t, { idleMs: 600 })
  const answer = await dripped(t, port, 'POST /api/v1/sources', 'application/json', ' ')
  assert.match(answer, /^HTTP\/1\.1 408 .*"code":"too_slow"/s)
})

/** Needs: the token. Bounded: how long a list may drip. */
test('a list that trickles is refused after a grace period, and one that arrives steadily is not', async (t) => {
  // Time passes only where a piece is waited for: a busy machine would make a steady list one that trickles.
  let now = performance.now()
  t.mock.method(performance, 'now', () => now)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const piecesOf = (count: number, bytes: number, everyMs: number) =>
    Readable.from(
      (async function* () {
        for (let n = 0; n < count; n++) {
          // Those before have been taken.
          await nextTurn()
          now += everyMs
          t.mock.timers.tick(everyMs)
          await nextTurn()
          yield Buffer.alloc(bytes)
        }
      })(),
      { highWaterMark: 1 },
    )
  const read = async (list: Readable): Promise<number> => {
    let bytes = 0
    for await (const piece of paced(list, { graceMs: 300, perSecond: 1_000 })) bytes += piece.length
    return bytes
  }
  assert.equal(await read(piecesOf(20, 200, 50)), 4_000)
  await assert.rejects(read(piecesOf(100, 1, 50)), (error) => {
    assert.ok(error instanceof RequestRefused)
    assert.equal((error.answer.body as Refused).code, 'too_slow')
    return true
  })
})

test('a list that trickles gets an answer that says so, and frees its place', async (t) => {
  let reading = 0
  const sync = operation({
    id: 'sync',
    route: 'POST /sync',
    command: null,
    summary: 'Reads a list',
    streams: { 'text/plain': { description: 'Lines.', line: z.string() } },
    success: { status: 200, description: 'Read.', schema: z.object({}) },
    handle: async ({ lines }) => ({
      async run() {
        reading++
        try {
          for await (const piece of lines) assert.ok(piece.length > 0)
        } finally {
          reading--
        }
      },
    }),
  })
  const { port } = await underTest(t, { operations: [sync], idleMs: 500 })
  const answer = await dripped(t, port, 'POST /api/v1/sync', 'text/plain', 'u')
  assert.match(answer, /^HTTP\/1\.1 408 .*connection: close.*"code":"too_slow"/is)
  assert.equal(reading, 0)
})

/** Sends a head and then a byte at a time; resolves with what came, once the server has closed the connection. */
async function dripped(
  t: TestContext,
  port: number,
  target: string,
  type: string,
  byte: string,
): Promise<string> {
  const lines = [
    `${target} HTTP/1.1`,
    'Host: a',
    `Authorization: Bearer ${token}`,
    `Content-Type: ${type}`,
    'Content-Length: 100000',
  ]
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  socket.on('error', () => {})
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.write(`${lines.join('\r\n')}\r\n\r\n`)
  const drip = setInterval(() => socket.write(byte), 50)
  t.after(() => clearInterval(drip))
  await once(socket, 'close', { signal: AbortSignal.timeout(30_000) })
  return answer
}
