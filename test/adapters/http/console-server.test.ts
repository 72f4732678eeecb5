import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test, type TestContext } from 'node:test'
import { openConsoleServer } from '../../../src/adapters/http/console-server.ts'
import { operations } from '../../../src/console/api/operations.ts'
import { silentLog } from '../../support/silent-log.ts'

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
