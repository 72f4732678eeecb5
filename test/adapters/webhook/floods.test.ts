// Receivers that send as fast as they can, 64 at once: as many as an endpoint begins with.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import { Worker } from 'node:worker_threads'
import type { Outcome } from '../../../src/core/delivery/outcome.ts'
import { startReceiver } from '../../support/receivers.ts'
import { openTransport, send } from './transport-under-test.ts'

/** Writes `first`, and then `again` for as long as it is read. In a thread of its own. */
async function startFlood(t: TestContext, first: string, again: string): Promise<string> {
  const server = new Worker(
    `const { createServer } = require('node:net')
     const { parentPort, workerData: { first, again } } = require('node:worker_threads')
     const piece = Buffer.from(again.repeat(Math.ceil(65_536 / again.length)))
     const server = createServer((socket) => {
       const flood = () => { while (!socket.destroyed && socket.write(piece)); }
       socket.on('error', () => {}).on('drain', flood).once('data', () => { socket.write(first); flood() })
     })
     server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
    { eval: true, workerData: { first, again } },
  )
  t.after(() => server.terminate())
  const [port] = (await once(server, 'message')) as [number]
  return `http://127.0.0.1:${port}/`
}

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'
const floods: [what: string, first: string, again: string, kind: Outcome['kind']][] = [
  ['interim responses', '', 'HTTP/1.1 100\r\n\r\n', 'network'],
  ['large interim responses', '', `HTTP/1.1 103 -\r\n${'a:\r\n'.repeat(3_000)}\r\n`, 'network'],
  ['a header without an end', 'HTTP/1.1 200 OK\r\n', 'a:\r\n', 'network'],
  ['chunks of one byte', chunked, '1\r\nx\r\n', 'success'],
  ['chunk extensions', chunked, `1;${'x'.repeat(10_000)}\r\nx\r\n`, 'success'],
  ['trailers', `${chunked}0\r\n`, 'a:\r\n', 'success'],
  ['a body', 'HTTP/1.1 200 OK\r\n\r\n', 'x', 'success'],
]
for (const [what, first, again, kind] of floods) {
  test(`a receiver that floods costs a bounded part of the process: ${what}`, async (t) => {
    const url = await startFlood(t, first, again)
    const receiver = await startReceiver(t)
    const transport = openTransport(t, { timeoutMs: 30_000 })
    const [flooding, healthy] = [url, receiver.url].map((each) => transport.open({ url: each, headers: {} }))
    await send(healthy!)
    const before = process.threadCpuUsage().user
    const flooded = Promise.all(Array.from({ length: 64 }, () => send(flooding!)))
    for (let index = 0; index < 20; index++) assert.equal((await send(healthy!)).kind, 'success')
    for (const outcome of await flooded) assert.equal(outcome.kind, kind, JSON.stringify(outcome))
    // What 64 responses of the largest size take, and several times as much again. Without a bound they take all of the time limit.
    const ms = (process.threadCpuUsage().user - before) / 1_000
    assert.ok(ms < 1_500, `${ms} ms of CPU`)
  })
}
