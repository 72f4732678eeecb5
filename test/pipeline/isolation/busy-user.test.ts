// One user with more calls than an endpoint that works, but is slow, can take in hours: no other user may wait for them.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { murmur2OfText } from '../../../src/adapters/kafka/wire/murmur2.ts'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'
import { dispositions, sampleOf, samplesOf, tierRecords } from '../../support/calls/samples.ts'

const partitions = 4
const idsOf = (receiver: Receiver) => receiver.requests.map((request) => request.json().messageId as string)

/** A user of each partition. */
function userOfEach(): string[] {
  const users: string[] = []
  for (let index = 0; users.filter(Boolean).length < partitions; index++) {
    const user = `hot-${index}`
    users[(murmur2OfText(user) & 0x7fffffff) % partitions] ??= user
  }
  return users
}

test('a busy user of each partition at a slow endpoint, with more calls than are read ahead, delays no other user', async (t) => {
  const each = 8_000
  const others = 200
  // A small process, so that few calls fill what an endpoint may hold; tiers long enough for what is put off to lie there.
  const deployment = await deploy(t, {
    PARTITIONS_CALLS: String(partitions),
    MAX_IN_FLIGHT: '100',
    RETRY_TIERS: '10m,20m',
  })
  const [slow, well] = await Promise.all([startReceiver(t), startReceiver(t)])
  slow.answer({ delayMs: 1_000 })
  await deployment.destination({ id: 'slow', source: 'busy', urls: [slow.url] })
  await deployment.destination({ id: 'well', source: 'quiet', urls: [well.url] })
  // Before its calls are there: at a start, whole partitions may be read ahead before the first call is taken.
  const forwarder = await deployment.forwarder()
  const hot = userOfEach()
  const hotCalls = Array.from({ length: each }, (_, index) =>
    hot.map((userId, which) => someCall({ sourceId: 'busy', userId, messageId: `hot-${which}-${index}` })),
  ).flat()
  await deployment.produce(hotCalls)
  // Behind all of them, in every partition.
  const ids = Array.from({ length: others }, (_, index) => `m-${index}`)
  await deployment.produce(
    ids.map((messageId, index) => someCall({ sourceId: 'quiet', messageId, userId: `u-${index}` })),
  )
  const began = Date.now()
  await well.waitFor(others, 60_000)
  t.diagnostic(`all calls of the others had arrived after ${Date.now() - began} ms`)
  assert.deepEqual(idsOf(well).sort(), [...ids].sort())
  // At one call a second each it would have taken the busy users two hours to get that far.
  assert.ok(slow.requests.length < 4 * 60)

  await deployment.drained(90_000)
  const kept = await tierRecords(deployment, 'slow')
  const delivered = idsOf(slow)
  const deliveredIds = new Set(delivered)
  assert.equal(deliveredIds.size, delivered.length)
  const keptIds = new Set(kept.map(({ messageId }) => messageId))
  assert.equal(keptIds.size, kept.length)
  // Not deepEqual: what it prints of lists this long takes minutes and gigabytes.
  const lost = hotCalls.filter(({ messageId }) => !keptIds.has(messageId) && !deliveredIds.has(messageId))
  assert.deepEqual(lost.slice(0, 10), [])
  // On a busy machine an answer may come too late: then the call is kept although it arrived.
  const unheard = new Set(delivered.filter((id) => keptIds.has(id)))
  for (const { messageId, attempts, timesScheduled } of kept) {
    assert.equal(attempts, unheard.has(messageId) ? 1 : 0)
    assert.equal(timesScheduled, 1)
  }
  for (const which of hot.keys()) {
    const numbers = delivered
      .filter((id) => id.startsWith(`hot-${which}-`))
      .map((id) => Number(id.split('-')[2]))
    assert.ok(numbers.length > 0)
    assert.deepEqual(
      numbers,
      [...numbers].sort((a, b) => a - b),
      'what was not put off kept its order',
    )
  }
  assert.equal(sampleOf(forwarder, dispositions('slow', 'deferred')), kept.length - unheard.size)
  assert.equal(sampleOf(forwarder, dispositions('well', 'deferred')), 0)
  const page = samplesOf(forwarder)
  const reasons = ['busy_key', 'slow'].map(
    (reason) => page.get(`postrider_deferrals_total{destination="slow",reason="${reason}"}`) ?? 0,
  )
  assert.ok(reasons[0]! > 0)
  assert.equal(reasons[0]! + reasons[1]!, kept.length - unheard.size)
  await until(() => sampleOf(forwarder, 'postrider_in_flight') === 0)
  await forwarder.stop()
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok)
})
