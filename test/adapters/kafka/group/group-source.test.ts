import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupMember, listener, withConsumers } from '../group-member.ts'
import { someCall } from '../../../support/calls/calls.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { until } from '../../../support/until.ts'

test('a consumer that waits forever, for whatever reason, is replaced', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { kafka } = deployment
  let made = 0
  const hanging = withConsumers(kafka, (options) => {
    const consumer = kafka.consumer(options)
    return ++made > 1 ? consumer : { ...consumer, connect: () => new Promise(() => {}) }
  })
  const source = groupMember(deployment, { kafka: hanging, maxStallMs: 5_000 })
  let read = 0
  await source.start(
    listener({
      assigned: ([partition]) => source.seek(partition!, 0),
      fetched: (_topic, _partition, { to }) => void (read = to),
    }),
  )
  // More than two, where the broker takes longer than that to let one in.
  assert.ok(made > 1)
  await deployment.produce([someCall()])
  await until(() => read === 1, 60_000, 'a record')
})

test('a member that has nothing to fetch can commit what finished before', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { topics, produce, committed } = deployment
  await produce([someCall(), someCall()])
  const source = groupMember(deployment)
  const partition = { topic: topics.calls, partition: 0 }
  const acknowledged = Promise.withResolvers<boolean>()
  await source.start(
    listener({
      assigned() {
        // As after a consumer that broke off: everything was read and is finished, and was not committed.
        source.seek(partition, 2)
        setImmediate(() => {
          source
            .commit([{ ...partition, position: 2, metadata: '' }])
            .then(acknowledged.resolve, acknowledged.reject)
        })
      },
      fetched: () => assert.fail('there is nothing to fetch'),
    }),
  )
  assert.equal(await acknowledged.promise, true)
  assert.deepEqual(await committed(topics.calls), [2])
})

test('a member whose commits are refused for good says so and joins again', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { topics } = deployment
  const source = groupMember(deployment, { maxStallMs: 3_000 })
  let joined = 0
  await source.start(
    listener({
      assigned: () => void joined++,
    }),
  )
  // Larger than brokers take: refused, while heartbeats are answered.
  const refused = { topic: topics.calls, partition: 0, position: 0, metadata: 'x'.repeat(5_000) }
  const commitUntil = (condition: () => boolean, what: string) =>
    until(
      async () => {
        assert.equal(await source.commit([refused]), false)
        return condition()
      },
      60_000,
      what,
    )
  await commitUntil(
    () => /^Kafka has refused commits for \d+ s$/.test(source.trouble() ?? ''),
    'readiness to say so',
  )
  // A young group may join once more for other reasons, too.
  const before = joined
  await commitUntil(() => joined > before, 'another join')
})

test('records that could not be taken, by a bug, are read again from what is committed', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  await deployment.produce([someCall(), someCall()])
  const source = groupMember(deployment)
  let joined = 0
  let joinedBefore = 0
  const read: number[] = []
  await source.start(
    listener({
      assigned([partition]) {
        joined++
        source.seek(partition!, 0)
      },
      fetched(_topic, _partition, { from, to }) {
        if (joinedBefore === 0) {
          joinedBefore = joined
          throw new TypeError('a bug')
        }
        read.push(from, to)
      },
    }),
  )
  await until(() => read.at(-1) === 2, 30_000, 'both records')
  assert.equal(read[0], 0)
  assert.ok(joined > joinedBefore)
})
