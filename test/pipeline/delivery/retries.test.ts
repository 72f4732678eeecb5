import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, type Deployment, type RunningForwarder } from '../../support/deployment/deployment.ts'
import { startReceiver, type Answer, type ReceivedRequest } from '../../support/receivers.ts'
import {
  connect,
  counted,
  dispositions,
  sampleOf,
  samplesOf,
  tierRecords,
} from '../../support/calls/samples.ts'
import { freePort } from '../../../src/local/ports.ts'

const secret = 's3cret'
const tiersMs = [300, 600]

/** The attempts of one delivery, by the receiver's clock, which is the forwarder's too. */
function gaps(requests: readonly ReceivedRequest[]): number[] {
  return requests.slice(1).map((request, index) => request.at - requests[index]!.at)
}

/** A failed attempt: the destination that meets it, what it is called, the answer, and the outcome. */
type Failure = [id: string, what: string, answer: Answer, outcome: string]

/** Fails two times by that answer: the same bytes come again until they are taken. Returns how often it failed. */
async function comesAgain(
  t: TestContext,
  deployment: Deployment,
  forwarder: RunningForwarder,
  [id, , answer, outcome]: Failure,
): Promise<number> {
  const receiver = await startReceiver(t, { secret })
  receiver.answer(answer, answer, { status: 200 })
  await connect(deployment, forwarder, { id, urls: [receiver.url] })
  await deployment.produce([someCall({ sourceId: id })])
  await receiver.waitFor(3)
  await counted(forwarder, dispositions(id, 'delivered'), 1)
  const { requests } = receiver
  for (const request of requests) {
    assert.deepEqual(request.body, requests[0]!.body)
    assert.equal(request.signature, 'valid')
    assert.equal(request.headers['idempotency-key'], `m-1:${id}`)
  }
  gaps(requests).forEach((gap, index) => assert.ok(gap >= tiersMs[Math.min(index, 1)]!, `early: ${gap} ms`))
  const failed = sampleOf(forwarder, dispositions(id, 'retried'))
  const series = `postrider_webhook_attempts_total{destination="${id}",outcome="${outcome}"}`
  assert.equal(sampleOf(forwarder, series), failed)
  const lines = forwarder.log.filter((line) => line.destination === id && line.outcome === outcome)
  assert.deepEqual(
    lines.map(({ attempt, level }) => [attempt, level]),
    Array.from({ length: failed }, (_, index) => [index + 1, 40]),
  )
  return failed
}

test('after no answer in time the same bytes are sent again and arrive', async (t) => {
  const deployment = await deploy(t, { WEBHOOK_TIMEOUT: '1s', RETRY_TIERS: '300ms,600ms' })
  const forwarder = await deployment.forwarder()
  const hang: Failure = ['timeout', 'no answer', { instead: { do: 'hang' } }, 'timeout']
  // On a busy machine the answer that it gets may come too late, too: the others have longer for each attempt.
  assert.ok((await comesAgain(t, deployment, forwarder, hang)) >= 2)
})

test('retries', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms' })
  const forwarder = await deployment.forwarder()
  const produce = (source: string, messageId = 'm-1') =>
    deployment.produce([someCall({ sourceId: source, messageId })])
  const retriesOf = (destination: string) => tierRecords(deployment, destination)

  const failures: Failure[] = [
    ['s500', 'a 500', { status: 500 }, 'status_5xx'],
    ['s503', 'a 503', { status: 503 }, 'status_5xx'],
    ['s599', 'a 599', { status: 599 }, 'status_5xx'],
    ['s408', 'a 408', { status: 408 }, 'status_4xx'],
    ['s425', 'a 425', { status: 425 }, 'status_4xx'],
    ['s429', 'a 429', { status: 429 }, 'status_429'],
    ['reset', 'a reset', { instead: { do: 'reset' } }, 'network'],
    ['closed', 'a close without an answer', { instead: { do: 'close' } }, 'network'],
    ['nonsense', 'an answer that is no HTTP', { instead: { do: 'raw', bytes: 'hello\r\n\r\n' } }, 'network'],
  ]
  await t.test('failures that may pass', { concurrency: true }, async (t) => {
    await Promise.all(
      failures.map((failure) =>
        t.test(`after ${failure[1]} the same bytes are sent again and arrive`, async (t) => {
          assert.equal(await comesAgain(t, deployment, forwarder, failure), 2)
        }),
      ),
    )
  })

  await t.test('a refused connection is retried until a server listens', async (t) => {
    const port = await freePort()
    await connect(deployment, forwarder, { id: 'refused', urls: [`http://127.0.0.1:${port}/`] })
    await produce('refused')
    await counted(forwarder, dispositions('refused', 'retried'), 1)
    const receiver = await startReceiver(t, { port, secret })
    const [request] = await receiver.waitFor(1)
    assert.equal(request!.signature, 'valid')
  })

  await t.test(
    'Retry-After in seconds is honoured over several tiers, without an attempt in between',
    async (t) => {
      const receiver = await startReceiver(t)
      receiver.answer({ status: 429, headers: { 'retry-after': '4' } }, { status: 200 })
      await connect(deployment, forwarder, { id: 'seconds', urls: [receiver.url] })
      await produce('seconds')
      const [gap] = gaps(await receiver.waitFor(2))
      await counted(forwarder, dispositions('seconds', 'delivered'), 1)
      t.diagnostic(`${gap! - 4_000} ms later than asked for`)
      assert.ok(gap! >= 4_000, `early: ${gap} ms`)
      const waits = await retriesOf('seconds')
      // Seven of them last as long, and fewer where the machine is slow to take a record out of one.
      assert.ok(waits.length >= 2, `${waits.length} tiers`)
      assert.deepEqual(
        waits.map(({ attempts, timesScheduled }) => [attempts, timesScheduled]),
        waits.map((_, index) => [1, index + 1]),
      )
      for (const { notBefore, firstScheduledAt } of waits) {
        assert.equal(notBefore, waits[0]!.notBefore)
        assert.ok(notBefore! - firstScheduledAt! > 3_900 && notBefore! - firstScheduledAt! <= 4_000)
      }
      assert.equal(receiver.requests.length, 2)
      assert.equal(sampleOf(forwarder, dispositions('seconds', 'retried')), 1)
    },
  )

  for (const status of [429, 503]) {
    await t.test(`Retry-After as a date is honoured after a ${status}`, async (t) => {
      const id = `date${status}`
      const receiver = await startReceiver(t)
      const date = Math.ceil((Date.now() + 1_200) / 1_000) * 1_000
      const answer = { status, headers: { 'retry-after': new Date(date).toUTCString() } }
      receiver.answer(answer, { status: 200 })
      await connect(deployment, forwarder, { id, urls: [receiver.url] })
      await produce(id)
      const requests = await receiver.waitFor(2)
      t.diagnostic(`${requests[1]!.at - date} ms later than asked for`)
      assert.ok(requests[1]!.at >= date)
    })
  }

  await t.test('a Retry-After that is shorter than the tier or invalid changes nothing', async (t) => {
    const receiver = await startReceiver(t)
    receiver.answer(
      { status: 503, headers: { 'retry-after': '0' } },
      { status: 503, headers: { 'retry-after': 'soon' } },
      { status: 200 },
    )
    await connect(deployment, forwarder, { id: 'short', urls: [receiver.url] })
    await produce('short')
    gaps(await receiver.waitFor(3)).forEach((gap, index) => assert.ok(gap >= tiersMs[index]!))
  })

  await t.test(
    'with five URLs of which one accepts the call, it is delivered, and none gets it twice',
    async (t) => {
      const receivers = await Promise.all(Array.from({ length: 5 }, () => startReceiver(t, { secret })))
      const statuses = [503, 404, 503, 200, 410]
      receivers.forEach((receiver, index) => receiver.answer({ status: statuses[index]! }))
      await connect(deployment, forwarder, { id: 'five', urls: receivers.map(({ url }) => url) })
      await produce('five')
      await counted(forwarder, dispositions('five', 'delivered'), 1)
      await Promise.all(receivers.map((receiver) => receiver.waitFor(1)))
      for (const receiver of receivers) {
        assert.deepEqual(receiver.requests[0]!.body, receivers[0]!.requests[0]!.body)
        assert.equal(receiver.requests[0]!.signature, 'valid')
      }
      // A call that is retried through both tiers ends after anything that the first one might have left there.
      receivers.forEach((receiver) => receiver.answer({ status: 503 }, { status: 503 }, { status: 200 }))
      await produce('five', 'later')
      await counted(forwarder, dispositions('five', 'delivered'), 2)
      for (const receiver of receivers) {
        const ids = receiver.requests.map((request) => request.json().messageId)
        assert.deepEqual(ids.slice(0, 2), ['m-1', 'later'])
        assert.ok(!ids.slice(1).includes('m-1'))
      }
      assert.deepEqual(
        (await retriesOf('five')).map(({ messageId }) => messageId),
        ['later', 'later'],
      )
    },
  )

  await t.test('only URLs that may still accept the call are retried', async (t) => {
    const [final, passing, refusing] = await Promise.all([
      startReceiver(t),
      startReceiver(t),
      startReceiver(t),
    ])
    final.answer({ status: 400 })
    refusing.answer({ status: 503 }, { status: 403 })
    passing.answer({ status: 503 }, { status: 503 }, { status: 200 })
    await connect(deployment, forwarder, { id: 'mixed', urls: [final.url, passing.url, refusing.url] })
    await produce('mixed')
    await passing.waitFor(3)
    await counted(forwarder, dispositions('mixed', 'delivered'), 1)
    assert.equal(final.requests.length, 1)
    assert.equal(refusing.requests.length, 2)
    assert.deepEqual(
      (await retriesOf('mixed')).map(({ endpointIds }) => endpointIds),
      [['u2', 'u3'], ['u2']],
    )
  })

  await t.test('the lateness of retries is measured', (t) => {
    const count = samplesOf(forwarder).get('postrider_retry_lateness_seconds_count')!
    const sum = samplesOf(forwarder).get('postrider_retry_lateness_seconds_sum')!
    const retried = failures.length * 2 + 9
    assert.ok(count >= retried, `${count} of at least ${retried} retries were measured`)
    t.diagnostic(`${count} retries, ${Math.round((sum / count) * 1_000)} ms late on average`)
  })
})
