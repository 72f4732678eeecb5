// A process that may write to a retry topic can add dead letters, and do nothing else to the forwarders.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DeferredRun } from '../../../src/core/delivery/deferred-run.ts'
import type { RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import { auditOf } from '../../support/audit.ts'
import { delivery } from '../../support/replay/dead-letters.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'
import { connect, counted, dispositions, sampleOf } from '../../support/calls/samples.ts'

const year = 365 * 24 * 3_600_000

/** As a forwarder would have written it a moment ago. */
function retryOf(messageId: string, given: Partial<RetryDelivery>): RetryDelivery {
  const now = Date.now()
  return {
    ...delivery(messageId, {
      endpointIds: ['u1'],
      firstAttemptAt: now,
      firstScheduledAt: now,
      notBefore: null,
    }),
    ...{ attempts: 1, timesScheduled: 1, scheduledAt: now, from: null, owner: 'member/1' },
    ...given,
  }
}

test('retries that no forwarder would write become dead letters or wait no longer than others, and later retries proceed', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms', PARTITIONS_RETRY: '1' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  receiver.answer((request) => ({
    status: String(request.headers['idempotency-key']).startsWith('good') ? 200 : 503,
  }))
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url] })
  const codec = deployment.codecs.retries('300ms')
  await codec.ready()
  const now = Date.now()
  const refused: Partial<RetryDelivery>[] = [
    { attempts: 2 ** 31 - 1 },
    { timesScheduled: 2 ** 31 - 1 },
    { attempts: -1 },
    { timesScheduled: -(2 ** 31) },
  ]
  const expiring: Partial<RetryDelivery>[] = [
    { firstAttemptAt: now + year, firstScheduledAt: now + year },
    { firstAttemptAt: now + year, firstScheduledAt: now + year, notBefore: now + year },
    { firstAttemptAt: null, firstScheduledAt: null, notBefore: now + year, attempts: 0 },
    { firstAttemptAt: Number.MAX_SAFE_INTEGER - 1, notBefore: Number.MAX_SAFE_INTEGER - 1 },
    { firstAttemptAt: -8.64e15, firstScheduledAt: -8.64e15 },
  ]
  const retries = [
    ...refused.map((given, index) => retryOf(`refused-${index}`, given)),
    ...expiring.map((given, index) => retryOf(`expiring-${index}`, given)),
    retryOf('good', {}),
  ]
  await deployment.producer.send({
    topic: deployment.topics.retry('300ms'),
    messages: retries.map((retry) => ({ key: 'u-1', value: codec.encode(retry) })),
  })
  await counted(forwarder, dispositions('crm', 'delivered'), 1)
  await counted(forwarder, dispositions('none', 'dead_lettered'), refused.length)
  // Only now: on a busy machine a short window may end before the good one is due.
  await deployment.settings.execute({
    ...{ type: 'update_destination', id: 'crm', options: { retryWindow: '3s' } },
  })
  await counted(forwarder, dispositions('crm', 'dead_lettered'), expiring.length, 30_000)
  const deadLetters = await deployment.deadLetters()
  const reasons = deadLetters.map(({ reason, delivery }) => [
    delivery?.messageId.split('-')[0] ?? 'none',
    reason,
  ])
  for (const [of, reason] of reasons)
    assert.ok(
      of === 'none' ? reason === 'undecodable' : ['expired', 'not_attempted'].includes(reason!),
      `${of} ${reason}`,
    )
  assert.equal(sampleOf(forwarder, 'postrider_in_flight'), 0)
  assert.equal(forwarder.problem(), null)
  assert.ok(!forwarder.log.some(({ level }) => level >= 60))
  await forwarder.stop()
  // Forged retries cannot make the audit report a missing call.
  assert.deepEqual(
    (await auditOf(deployment)).faults.filter(({ kind }) => kind === 'gap'),
    [],
  )
})

test('runs of calls that nobody wrote become dead letters, and what lies behind them proceeds', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms', PARTITIONS_RETRY: '1' })
  const { topics, codecs, producer } = deployment
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url] })
  const codec = codecs.retries('300ms')
  await codec.ready()
  const runOf = (given: Partial<DeferredRun>): DeferredRun => ({
    ...{ destinationId: 'crm', urlId: null, endpointIds: ['u1'], timesScheduled: 1, from: null },
    ...{ firstScheduledAt: Date.now(), scheduledAt: Date.now(), owner: 'member/1' },
    calls: { topic: topics.calls, partition: 0, runs: [{ start: 0, end: 1 }] },
    ...given,
  })
  const runs = [
    runOf({ calls: { topic: 'elsewhere', partition: 0, runs: [{ start: 0, end: 1 }] } }),
    runOf({ timesScheduled: -1 }),
    // In a partition that there is not, and behind the end.
    runOf({ calls: { topic: topics.calls, partition: 99, runs: [{ start: 0, end: 2 }] } }),
    runOf({ calls: { topic: topics.calls, partition: 0, runs: [{ start: 5, end: 6 }] } }),
  ]
  await producer.send({
    topic: topics.retry('300ms'),
    messages: [
      ...runs.map((run) => ({ key: null, value: codec.encode(run) })),
      { key: 'u-1', value: codec.encode(retryOf('good', {})) },
    ],
  })
  await counted(forwarder, dispositions('crm', 'delivered'), 1, 60_000)
  await counted(forwarder, dispositions('none', 'dead_lettered'), 2)
  await counted(forwarder, dispositions('crm', 'dead_lettered'), 3)
  const reasons = (await deployment.deadLetters()).map(({ reason }) => reason).sort()
  assert.deepEqual(reasons, [...Array<string>(3).fill('call_removed'), 'undecodable', 'undecodable'])
  assert.equal(forwarder.problem(), null)
})
