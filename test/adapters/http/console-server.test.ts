import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { z } from 'zod'
import { PostriderError } from '../../../src/errors.ts'
import { openConsoleServer } from '../../../src/console/server.ts'
import { operation } from '../../../src/operators/operation.ts'
import type { ConsoleServices } from '../../../src/operators/services.ts'
import { operations } from '../../../src/operators/operations.ts'
import { silentLog } from '../../support/silent-log.ts'
import { until } from '../../support/until.ts'

/** Sends this and nothing more; resolves with all that comes, once the server has closed the connection. */
async function answerTo(t: TestContext, port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  t.after(() => socket.destroy())
  let answer = ''
  socket.on('data', (chunk: Buffer) => (answer += chunk.toString()))
  socket.on('error', () => {})
  socket.write(text)
  await once(socket, 'close', { signal: AbortSignal.timeout(60_000) })
  return answer
}

async function underTest(t: TestContext, limits: { headMs?: number; idleMs?: number }): Promise<number> {
  const server = await openConsoleServer({
    port: 0,
    host: '127.0.0.1',
    token: 'token',
    version: '1',
    operations,
    services: () => null,
    counts: { request: () => {} },
    log: silentLog,
    ...limits,
  })
  t.after(() => server.close(0))
  return server.port
}

const head =
  'POST /api/v1/sources HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token\r\nContent-Type: application/json\r\n'

test('a head that arrives too slowly gets an answer that says so', async (t) => {
  const answer = await answerTo(t, await underTest(t, { headMs: 300 }), head)
  assert.match(answer, /^HTTP\/1\.1 408 /)
  assert.match(answer, /"code":"too_slow"/)
})

test('a client that stops in the middle of a body gets an answer and is disconnected', async (t) => {
  const port = await underTest(t, { idleMs: 300 })
  const answer = await answerTo(t, port, `${head}Content-Length: 100\r\n\r\n{"id":`)
  assert.ok(answer === '' || /^HTTP\/1\.1 408 /.test(answer), answer)
  // It goes on for others.
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/openapi.json`)
  assert.equal(response.status, 200)
})

test(
  'a stream goes on for as long as its client reads, and ends at once when the server is closed',
  { timeout: 20_000 },
  async (t) => {
    const written = Promise.withResolvers<(text: string) => void>()
    const stream = operation({
      id: 'streamed',
      route: 'GET /streamed',
      command: null,
      role: 'reader',
      summary: 'Lines',
      success: { status: 200, description: 'Lines.', schema: z.object({ line: z.number() }) },
      isStream: true,
      handle: async () => ({
        async stream({ write }, signal) {
          written.resolve(write)
          return { ended: once(signal, 'abort').then(() => {}) }
        },
      }),
    })
    const server = await openConsoleServer({
      port: 0,
      host: '127.0.0.1',
      token: 'token',
      version: '1',
      operations: [stream],
      services: () => ({ settings: { catchUp: async () => {} } }) as unknown as ConsoleServices,
      counts: { request: () => {} },
      log: silentLog,
    })
    t.after(() => server.close(0))
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/streamed`, {
      headers: { authorization: 'Bearer token' },
    })
    assert.equal(response.headers.get('content-type'), 'application/x-ndjson; charset=utf-8')
    const write = await written.promise
    write('{"line":1}')
    const lines = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    assert.equal((await lines.read()).value, '{"line":1}\n')
    // Were the stream waited for, this would take a minute.
    await server.close(60_000)
    assert.equal((await lines.read()).done, true)
  },
)

test(
  'a read goes on for as long as Kafka answers, and once it does not it is answered with 503, and is over',
  { timeout: 60_000 },
  async (t) => {
    let looks = 0
    const ended = Promise.withResolvers<void>()
    const read = operation({
      id: 'read',
      route: 'GET /read',
      command: null,
      role: 'reader',
      summary: 'Waits for brokers',
      success: { status: 200, description: 'Never.', schema: z.object({}) },
      async handle({ gone }) {
        await once(gone, 'abort')
        ended.resolve()
        return { status: 200, body: {} }
      },
    })
    const catchUp = async () => {
      // One look is before the read begins, and one that succeeds while it waits.
      if (++looks > 2) throw new PostriderError('kafka_unavailable', 'no broker answers')
    }
    const server = await openConsoleServer({
      port: 0,
      host: '127.0.0.1',
      token: 'token',
      version: '1',
      operations: [read],
      services: () => ({ settings: { catchUp } }) as unknown as ConsoleServices,
      counts: { request: () => {} },
      log: silentLog,
    })
    t.after(() => server.close(0))
    const headers = { authorization: 'Bearer token' }
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1/read`, { headers })
    assert.equal(response.status, 503)
    const { code, message } = (await response.json()) as { code: string; message: string }
    assert.equal(code, 'unavailable')
    assert.match(message, /no broker answers/)
    await ended.promise
    assert.equal(looks, 3)
  },
)

test(
  'a stream that nobody reads is ended in time, so that its place is free; one that is read goes on',
  { timeout: 60_000 },
  async (t) => {
    // Time passes only where this test lets it: else the one that is read could be late with reading, too.
    let now = performance.now()
    t.mock.method(performance, 'now', () => now)
    t.mock.timers.enable({ apis: ['setInterval'] })
    const begun: { write: (text: string) => void; signal: AbortSignal }[] = []
    const stream = operation({
      id: 'streamed',
      route: 'GET /streamed',
      command: null,
      role: 'reader',
      summary: 'Lines',
      success: { status: 200, description: 'Lines.', schema: z.string() },
      isStream: true,
      limit: { max: 2, busy: 'two are running' },
      handle: async () => ({
        async stream({ write }, signal) {
          begun.push({ write, signal })
          return { ended: once(signal, 'abort').then(() => {}) }
        },
      }),
    })
    const server = await openConsoleServer({
      port: 0,
      host: '127.0.0.1',
      token: 'token',
      version: '1',
      operations: [stream],
      services: () => ({ settings: { catchUp: async () => {} } }) as unknown as ConsoleServices,
      counts: { request: () => {} },
      log: silentLog,
      idleMs: 2_000,
    })
    t.after(() => server.close(0))
    const open = async () => {
      const socket = connect(server.port, '127.0.0.1')
      t.after(() => socket.destroy())
      socket.on('error', () => {})
      socket.write('GET /api/v1/streamed HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer token\r\n\r\n')
      const head = String((await once(socket, 'data'))[0])
      return { socket, status: Number(head.split(' ')[1]) }
    }
    const reading = await open()
    let read = 0
    reading.socket.on('data', (chunk: Buffer) => (read += chunk.length))
    const idle = await open()
    idle.socket.pause()
    assert.equal((await open()).status, 429)
    // More than the network keeps for a client.
    const line = 'x'.repeat(1 << 20)
    const lines = 32
    for (let count = 0; count < lines; count++) for (const { write } of begun) write(line)
    await until(() => read >= lines * line.length)
    // Twice as long as nothing may be taken.
    for (let second = 0; second < 4; second++) {
      now += 1_000
      t.mock.timers.tick(1_000)
    }
    assert.equal(begun[1]!.signal.aborted, true)
    assert.equal(begun[0]!.signal.aborted, false)
    const again = await open()
    assert.equal(again.status, 200)
    idle.socket.resume()
    await once(idle.socket, 'close')
  },
)
