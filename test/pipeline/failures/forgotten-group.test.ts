// Kafka forgets the offsets of a group that was stopped for longer than offsets.retention.minutes; deleting the group
// does the same at once. What a topic that is made again holds has the offsets of what is gone.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { auditOf } from '../../support/audit.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { NumberedCalls, countByPlace, placeOf } from '../../support/calls/numbered-calls.ts'
import { startReceiver } from '../../support/receivers.ts'
import { deleteRecords } from '../../support/kafka/delete-records.ts'
import { makeAgain } from '../../support/kafka/make-again.ts'

const isLoss = ({ msg }: { msg: string }) => msg.includes('lost')

async function forget({ admin }: Deployment, groupId: string): Promise<void> {
  // The broker may still see the last member leave.
  await until(
    () =>
      admin.deleteGroups([groupId]).then(
        () => true,
        () => false,
      ),
    60_000,
    'an empty group',
  )
  const { groups } = await admin.listGroups()
  assert.ok(!groups.some((group) => group.groupId === groupId))
}

test('a forgotten group starts from the oldest remaining call, with duplicates but no loss, and the audit names them', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '2' })
  const { admin, topics, config } = deployment
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  const first = await deployment.forwarder()
  // Several commits a partition: of a single one, the ledger cannot know later that it was made.
  for (let commits = 0; commits < 3; commits++) {
    await calls.produce(5)
    await deployment.drained(60_000)
  }
  await first.stop()
  assert.equal(receiver.requests.length, 30)

  await deleteRecords(admin, topics.calls, [{ partition: 1, offset: 4 }])
  await forget(deployment, config.groupId)
  await calls.produce(5)
  const second = await deployment.forwarder()
  await deployment.drained(60_000)
  await second.stop()
  const isThere = (place: string) => {
    const [partition, offset] = place.split('/').map(Number) as [number, number]
    return partition === 0 || offset >= 4
  }
  const again = calls.places.slice(0, 30).filter(isThere)
  const expected = [...calls.places, ...again]
  assert.deepEqual(receiver.requests.map(placeOf).toSorted(), expected.toSorted())
  assert.deepEqual(second.log.filter(isLoss), [])

  const { faults } = await auditOf(deployment)
  assert.deepEqual(
    faults
      .map(({ kind, topic, partition, first, last }) => ({ kind, topic, partition, first, last }))
      .toSorted((a, b) => a.partition - b.partition),
    [
      { kind: 'overlap', topic: topics.calls, partition: 0, first: 0, last: 14 },
      { kind: 'overlap', topic: topics.calls, partition: 1, first: 4, last: 14 },
    ],
  )
})

test('when the group of the retries is forgotten, everything in the tiers still arrives, and no call is repeated', async (t) => {
  const receiver = await startReceiver(t)
  const isWaiting = new Set(['waits-0', 'waits-1', 'waits-2'])
  receiver.answer((request) => ({ status: isWaiting.has(placeOf(request)) ? 503 : 200 }))
  const deployment = await deploy(t)
  const { topics, config } = deployment
  await deployment.destination({ urls: [receiver.url] })
  const first = await deployment.forwarder()
  const ids = ['at-once-0', ...isWaiting, 'at-once-1']
  await deployment.produce(ids.map((messageId) => someCall({ messageId, userId: messageId })))
  await deployment.drained(60_000)
  // So that the group has committed something that can be forgotten.
  await until(async () => {
    const offsets = await Promise.all(
      config.retryTiers.map(({ name }) =>
        deployment.committed(topics.retry(name), `${config.groupId}.retries`),
      ),
    )
    return offsets.flat().some((offset) => offset > 0)
  }, 60_000)
  await first.stop()

  await forget(deployment, `${config.groupId}.retries`)
  isWaiting.clear()
  const before = receiver.requests.length
  const second = await deployment.forwarder()
  const arrived = () => new Set(receiver.requests.slice(before).map(placeOf))
  await until(() => arrived().size === 3, 60_000, 'what waited')
  assert.deepEqual([...arrived()].toSorted(), ['waits-0', 'waits-1', 'waits-2'])
  await second.stop()
  const times = countByPlace(receiver.requests)
  assert.deepEqual([times.get('at-once-0'), times.get('at-once-1')], [1, 1])
  assert.deepEqual(second.log.filter(isLoss), [])
})

test('calls of a topic that was made again under a forwarder arrive once each, and the audit names what came twice', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { topics } = deployment
  await deployment.destination({ urls: [receiver.url] })
  const forwarder = await deployment.forwarder()
  const produce = (ids: string[]) =>
    deployment.produce(ids.map((messageId) => someCall({ messageId, userId: messageId })))
  const idsOf = (prefix: string, count: number) =>
    Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
  // Several commits: of a single one, the ledger cannot know later that it was made.
  for (const prefix of ['a', 'b', 'c']) {
    await produce(idsOf(prefix, 10))
    await deployment.drained(60_000)
  }
  await makeAgain(deployment, topics.calls)
  const again = idsOf('again', 5)
  await produce(again)
  await receiver.waitFor(35, 60_000)
  assert.deepEqual(receiver.requests.slice(30).map(placeOf).toSorted(), again)
  await until(async () => (await deployment.committed(topics.calls))[0] === 5, 60_000, 'the commit')
  await forwarder.stop()
  assert.equal(receiver.requests.length, 35)
  const { faults } = await auditOf(deployment)
  assert.deepEqual(
    faults.map(({ kind, topic, first, last }) => [kind, topic, first, last]),
    [['overlap', topics.calls, 0, 29]],
  )
})
