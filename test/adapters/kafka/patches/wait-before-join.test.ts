import assert from 'node:assert/strict'
import { test } from 'node:test'
import { groupMember, listener } from '../group-member.ts'
import { someCall } from '../../../support/calls/calls.ts'
import { deploy } from '../../../support/deployment/deployment.ts'
import { until } from '../../../support/until.ts'

const patienceMs = 60_000

test('a rebalance waits for the last commit of a generation, but not forever', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  const { topics } = deployment
  const member = () => groupMember(deployment, { sessionTimeoutMs: 30_000 })
  const first = member()
  const told: string[] = []
  const state = () => (first.mayStart() ? 'may start' : first.isReady() ? 'waits' : 'is not ready')
  let read = 0
  let rejoining = async () => {
    told.push(`rejoins, ${state()}`)
    // Long enough to join meanwhile, if nothing held that back; of the second that it is held back, most is left to commit.
    await new Promise((resolve) => setTimeout(resolve, 100))
    const acknowledged = await first.commit([
      { topic: topics.calls, partition: 0, position: 1, metadata: '' },
    ])
    told.push(`${acknowledged ? 'committed' : 'not committed'}, ${state()}`)
  }
  await first.start(
    listener({
      assigned([partition]) {
        told.push(`assigned, ${state()}`)
        if (read === 0) first.seek(partition!, 0)
      },
      rejoining: () => rejoining(),
      lost: () => void told.push('lost'),
      fetched: (_topic, _partition, { to }) => void (read = to),
    }),
  )
  await deployment.produce([someCall(), someCall()])
  await until(() => read === 2, patienceMs, 'that both are read')

  const second = member()
  await second.start(listener())
  const assigned = () => told.filter((line) => line.startsWith('assigned')).length
  await until(() => assigned() === 2, patienceMs, 'that the first one is assigned again')
  assert.deepEqual(told, ['assigned, may start', 'rejoins, waits', 'committed, waits', 'assigned, may start'])
  assert.deepEqual(await deployment.committed(topics.calls), [1])

  rejoining = () => new Promise(() => {})
  await second.stop()
  await until(() => assigned() === 3, patienceMs, 'that the group goes on without that commit')
  assert.deepEqual(told.slice(4), ['assigned, may start'])
})
