import assert from 'node:assert/strict'
import { test } from 'node:test'
import kafkajs from 'kafkajs'
import { groupMember, listener, withConsumers } from './group-member.ts'
import type { OwnedPartitions } from '../../../src/adapters/kafka/group/sticky-assigner.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'

test('a member whose consumer broke off claims its partitions under the generation in which it owned them', async (t) => {
  const deployment = await deploy(t, { PARTITIONS_CALLS: '4' })
  const { kafka, config, topics, admin } = deployment
  let generation = 0
  const watched = withConsumers(kafka, (options) => {
    const consumer = kafka.consumer(options)
    consumer.on('consumer.heartbeat', ({ payload }) => {
      generation = Number(payload.groupGenerationId)
    })
    return consumer
  })
  // A pause of a busy machine that ends a short session would make it another member meanwhile.
  const source = groupMember(deployment, { kafka: watched, sessionTimeoutMs: 30_000 })
  let assigned = 0
  let breaks = true
  /** When it broke off. */
  let before = { assigned: 0, generation: 0 }
  await source.start(
    listener({
      assigned(partitions) {
        assigned++
        for (const partition of partitions) source.seek(partition, 0)
      },
      lost: () => void (before = { assigned, generation }),
      // Its consumer is given up for it, as for a broker that stays away.
      fetched() {
        if (!breaks) return
        breaks = false
        throw new TypeError('broken on purpose')
      },
    }),
  )
  const joined = async () => {
    const { groups } = await admin.describeGroups([config.groupId])
    const { state, members } = groups[0]!
    if (state !== 'Stable' || members.length !== 1) return null
    const { userData } = kafkajs.AssignerProtocol.MemberMetadata.decode(members[0]!.memberMetadata)!
    return { memberId: members[0]!.memberId, claims: JSON.parse(userData.toString()) as OwnedPartitions }
  }
  const first = (await joined())!
  assert.deepEqual(first.claims, { owned: {}, generation: 0 })
  await until(() => generation > 0, 30_000, 'the first heartbeat, which tells the generation')

  await deployment.produce([someCall()])
  await until(() => before.assigned > 0, 30_000, 'that the consumer broke off')
  await until(() => assigned > before.assigned, 30_000, 'that it is a member again')
  const again = (await joined())!
  assert.notEqual(again.memberId, first.memberId)
  assert.deepEqual(again.claims, { owned: { [topics.calls]: [0, 1, 2, 3] }, generation: before.generation })
})
