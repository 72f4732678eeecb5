import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { DeliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { startCommand } from '../../support/deployment/deployment-cli.ts'
import { post, track, withSource } from '../../support/calls/collectors.ts'
import { auditOf, ledgerEvents } from '../../support/audit.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

/** A process as users run it; `port` is what it says it listens at with this text. */
async function startParts(t: TestContext, deployment: Deployment, text: string, ...parts: string[]) {
  const { process: child, ended } = startCommand(t, deployment, 'run', ...parts)
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const portOf = (what: string) =>
    Number(new RegExp(`${what} http://localhost:(\\d+)`).exec(output)?.[1] ?? 0)
  const isReady = () =>
    fetch(`http://127.0.0.1:${portOf('metrics at')}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )
  await until(async () => portOf(text) > 0 && (await isReady()), 60_000, 'readiness').catch(
    (error: unknown) => {
      throw new Error(output, { cause: error })
    },
  )
  return {
    url: `http://127.0.0.1:${portOf(text)}`,
    pid: child.pid,
    async stop() {
      child.kill('SIGTERM')
      assert.equal((await ended).status, 0, output)
    },
  }
}

const heartbeatsOf = (events: readonly DeliveryEvent[], role: string) =>
  events.flatMap(({ heartbeat }) => (heartbeat?.roles.includes(role) ? [heartbeat] : []))

test('each process writes heartbeats from its start to its end, and a collector says what it answered', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, {
    ADMIN_TOKEN: 'a-token-that-nobody-guesses-0123456789',
    COLLECTOR_PORT: '0',
    CONSOLE_PORT: '0',
  })
  await deployment.destination({ urls: [receiver.url] })
  await withSource(deployment, 'closed', false)
  const [both, console] = await Promise.all([
    startParts(t, deployment, 'collecting at', 'collector', 'forwarder'),
    startParts(t, deployment, 'admin API at', 'console'),
  ])
  const batch = [track('a'), track('b'), track('a'), { type: 'track', event: 'x' }, { type: 'nonsense' }]
  assert.equal((await post(both, '/v1/batch', { batch })).status, 200)
  assert.equal((await post(both, '/v1/identify', { userId: 'u', messageId: 'c' })).status, 200)
  assert.equal((await post(both, '/v1/track', 'no JSON')).status, 400)
  const asClosed = { authorization: `Basic ${btoa('key-of-closed:')}` }
  assert.equal((await post(both, '/v1/track', track('d'), asClosed)).status, 400)
  const asNobody = { authorization: `Basic ${btoa('nobody:')}` }
  assert.equal((await post(both, '/v1/track', track('e'), asNobody)).status, 401)
  await receiver.waitFor(3)
  await deployment.drained()
  // A process with a part that is not stopped yet does not say that it has ended.
  assert.ok((await ledgerEvents(deployment)).every(({ heartbeat }) => heartbeat?.isLast !== true))
  await both.stop()
  await console.stop()

  const events = await ledgerEvents(deployment)
  for (const role of ['collector', 'forwarder', 'console']) {
    const beats = heartbeatsOf(events, role)
    assert.ok(beats.length >= 2, role)
    assert.deepEqual(
      beats.map(({ sequence }) => sequence),
      beats.map((_, index) => index + 1),
    )
    assert.equal(new Set(beats.map(({ instance }) => instance)).size, 1)
    assert.deepEqual(
      beats.map(({ isLast }) => isLast),
      beats.map((_, index) => index === beats.length - 1),
    )
    const [first] = beats
    assert.equal(first!.pid, (role === 'console' ? console : both).pid)
    assert.ok(first!.startedAt <= Date.now() && first!.startedAt > Date.now() - 120_000)
  }
  const last = heartbeatsOf(events, 'forwarder').at(-1)!
  assert.deepEqual(last.roles, ['collector', 'forwarder'])
  assert.equal(last.requestsInFlight, 0)
  assert.deepEqual(
    last.endpoints.map(({ destinationId, urlId, breaker, inFlight, queued }) => [
      destinationId,
      urlId,
      breaker,
      inFlight,
      queued,
    ]),
    [['crm', 'u1', 'closed', 0, 0]],
  )

  const summaries = events.filter(({ type }) => type === 'collected')
  assert.deepEqual(
    summaries.map(({ collected }) => collected!.sequence),
    summaries.map((_, index) => index + 1),
  )
  const sums: Record<string, number> = {}
  for (const { sourceId, collected } of summaries) {
    assert.ok(collected!.from <= collected!.to)
    for (const { type, accepted, duplicate, refused } of collected!.types)
      for (const [name, count] of Object.entries({ accepted, duplicate, refused }))
        if (count > 0)
          sums[`${sourceId} ${type} ${name}`] = (sums[`${sourceId} ${type} ${name}`] ?? 0) + count
    for (const { reason, count } of collected!.refusals)
      sums[`${sourceId} ${reason}`] = (sums[`${sourceId} ${reason}`] ?? 0) + count
  }
  assert.deepEqual(sums, {
    'shop track accepted': 2,
    'shop track duplicate': 1,
    'shop identify accepted': 1,
    'shop unknown refused': 2,
    'shop track refused': 1,
    'shop no_user_anon_id': 1,
    'shop type_unknown': 1,
    'shop invalid_json': 1,
    'closed track refused': 1,
    'closed source_disabled': 1,
    'unknown unknown refused': 1,
    'unknown write_key_unknown': 1,
  })
  const report = await auditOf(deployment)
  assert.ok(report.ok)
  assert.equal(report.read.tallies, events.filter(({ tally }) => tally !== null).length)
})
