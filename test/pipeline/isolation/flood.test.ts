import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { collectorSample, post, startCollector, track } from '../../support/calls/collectors.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { rawRequest } from '../../support/calls/raw-http.ts'
import { startReceiver } from '../../support/receivers.ts'

const floodMs = 5_000
const connections = 24
const rate = 1_000

/** Needs: a write key, which may be public. Bounded: how long others wait behind what the flood left in the topic. */
test('a flood from one source puts only a few calls before those of another', async (t) => {
  const deployment = await deploy(t, { SOURCE_MAX_RATE: String(rate) })
  const [noisy, quiet] = [await startReceiver(t), await startReceiver(t)]
  await deployment.destination({ id: 'noisy-crm', source: 'noisy', urls: [noisy.url] })
  await deployment.destination({ id: 'quiet-crm', source: 'quiet', urls: [quiet.url] })
  const headersOf = (id: string) => ({ authorization: `Basic ${btoa(`key-of-${id}:`)}` })
  await deployment.forwarder()
  const collector = await startCollector(deployment)
  const batch = JSON.stringify({
    batch: Array.from({ length: 200 }, (_, n) => ({ type: 'identify', userId: `u-${n}` })),
  })
  const request = rawRequest('/v1/batch', [`Authorization: ${headersOf('noisy').authorization}`], batch)
  const sockets: Socket[] = []
  let answers = 0
  const begin = performance.now()
  for (let n = 0; n < connections; n++) {
    const socket = connect(collector.port, '127.0.0.1')
    t.after(() => socket.destroy())
    socket.on('error', () => {})
    // Whatever the answer, it sends the next request at once.
    socket.on('data', () => {
      answers++
      if (performance.now() - begin < floodMs) socket.write(request)
      else socket.end()
    })
    socket.write(request)
    sockets.push(socket)
  }
  const sentAt = new Map<string, number>()
  while (performance.now() - begin < floodMs) {
    const messageId = `quiet-${sentAt.size}`
    sentAt.set(messageId, Date.now())
    const { status } = await post(collector, '/v1/track', track(messageId), headersOf('quiet'))
    assert.equal(status, 200)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  await until(() => sockets.every(({ destroyed, readyState }) => destroyed || readyState !== 'open'))
  const seconds = (performance.now() - begin) / 1_000
  const taken = collectorSample(collector, 'source="noisy",type="identify",result="accepted"')
  const limited = collectorSample(collector, 'source="noisy",type="unknown",result="limited"')
  assert.ok(limited > 0, `${answers} answers, none of them for too high a rate`)
  // Its rate for as long as it lasted, its burst, and one batch.
  assert.ok(taken <= rate * (seconds + 1) + 200, `${taken} calls in ${seconds} s`)
  await quiet.waitFor(sentAt.size, 60_000)
  const waits = quiet.requests.map((request) => request.at - sentAt.get(String(request.json().messageId))!)
  t.diagnostic(
    `${answers} requests of the flood, ${taken} calls taken; another source's calls arrived within ${Math.round(Math.max(...waits))} ms`,
  )
})
