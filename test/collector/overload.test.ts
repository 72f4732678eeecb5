import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { startCollectorProcess } from '../support/deployment/collector-process.ts'
import { post, track, withSource, writeKey } from '../support/calls/collectors.ts'
import { deploy } from '../support/deployment/deployment.ts'
import { until } from '../support/until.ts'
import { rawRequest } from '../support/calls/raw-http.ts'
import { ownKafka } from '../support/deployment/rig.ts'

/** Each holds one request of nearly 500 KB out to it at any time: five times its budget. */
const connections = 700
/**
 * What memory may grow by, in MB: three times the 64 MB of bodies, the ids of recent calls, what V8 leaves lying.
 * What is offered at once would take a gigabyte in the same way: that is reckoned, not measured.
 */
const maxGrowthMb = 600

const requestOf = (calls: number, bytesEach: number): Buffer =>
  rawRequest(
    '/v1/batch',
    [`Authorization: Basic ${btoa(`${writeKey}:`)}`],
    // Without a messageId of its own each call is a new one, whenever it comes.
    JSON.stringify({
      batch: Array.from({ length: calls }, () =>
        track('', { messageId: null, properties: { a: 'x'.repeat(bytesEach) } }),
      ),
    }),
  )

/** Clients that send again at once after a 200, and after the Retry-After of any other answer. */
function offer(t: TestContext, port: number) {
  const counts = new Map<number, number>()
  const [large, small] = [requestOf(30, 16_000), requestOf(2_500, 60)]
  const sockets = new Set<Socket>()
  const timers = new Set<NodeJS.Timeout>()
  let ended = false
  const later = (act: () => void) => {
    if (ended) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      act()
    }, 1_000)
    timers.add(timer)
  }
  const open = (request: Buffer) => {
    const socket = connect({ port, host: '127.0.0.1' })
    sockets.add(socket)
    socket.on('data', (chunk) => {
      // Answers are small and come in one piece.
      const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(chunk.toString('latin1'))?.[1] ?? 0)
      counts.set(status, (counts.get(status) ?? 0) + 1)
      if (status === 200) socket.write(request)
      else later(() => socket.write(request))
    })
    socket.on('connect', () => socket.write(request))
    socket.on('error', () => {})
    // As it is after the 503 for a request that took half a minute to come in.
    socket.on('close', () => {
      sockets.delete(socket)
      later(() => open(request))
    })
  }
  const end = () => {
    ended = true
    for (const socket of sockets) socket.destroy()
    for (const timer of timers) clearTimeout(timer)
  }
  t.after(end)
  for (let n = 0; n < connections; n++) open(n % 10 === 0 ? small : large)
  return { count: (status: number) => counts.get(status) ?? 0, statuses: () => [...counts.keys()], end }
}

test('when calls exceed what Kafka can take, or Kafka is down, clients get 429 and 503 before memory grows', async (t) => {
  const kafka = await ownKafka(t)
  // A test within, for its topics must be gone before its broker is.
  await t.test('one broker', async (t) => {
    const deployment = await deploy(t, { KAFKA_BROKERS: kafka.brokers.join(), SOURCE_MAX_RATE: '0' })
    await withSource(deployment)
    const collector = await startCollectorProcess(t, deployment)
    const before = collector.memory().rssMb
    const sent = offer(t, collector.port)
    const more = async (status: number, count: number, when: string) => {
      const from = sent.count(status)
      await until(() => sent.count(status) >= from + count, 120_000, `${count} × ${status} ${when}`)
      const { peakMb } = collector.memory()
      t.diagnostic(`${when}: ${before} MB before, at most ${peakMb} MB so far`)
      assert.ok(peakMb < before + maxGrowthMb, `${when}: ${before} MB before, at most ${peakMb} MB so far`)
    }
    await more(429, 500, 'with more than Kafka takes')
    await kafka.kill()
    await more(503, 500, 'without a Kafka')
    assert.deepEqual(
      sent.statuses().filter((status) => ![200, 429, 503].includes(status)),
      [],
    )
    sent.end()
    await kafka.start()
    const url = `http://127.0.0.1:${collector.port}`
    const isTaken = async () => (await post({ url }, '/v1/track', track('after'))).status === 200
    await until(isTaken, 120_000, 'a call that is taken again')
    assert.ok(collector.isRunning())
  })
})
