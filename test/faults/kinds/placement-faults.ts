import { until } from '../../support/until.ts'
import { electPreferred } from '../load/raw-request.ts'
import { running } from './broker-faults.ts'
import type { FaultKind } from './fault-kinds.ts'
import { type Fault, type FaultContext, pause, recovered, seconds } from './fault.ts'

/** What moves when partitions get other leaders or replicas. */
interface Placement {
  topic: string
  partition: number
  replicas: number[]
}

const movedMs = 120_000
const copiesOf = 3

async function place({ rig, patience }: FaultContext, placements: readonly Placement[]): Promise<void> {
  const byTopic = Map.groupBy(placements, ({ topic }) => topic)
  await rig.admin.alterPartitionReassignments({
    topics: [...byTopic].map(([topic, each]) => ({
      topic,
      partitionAssignment: each.map(({ partition, replicas }) => ({ partition, replicas })),
    })),
    timeout: 20_000,
  })
  const isDone = async () => {
    const found = await rig.state.partitions()
    return placements.every(({ topic, partition, replicas }) => {
      const now = found.find((each) => each.topic === topic && each.partition === partition)!
      return now.replicas.join() === replicas.join() && now.isr.length === replicas.length
    })
  }
  await until(isDone, movedMs * patience, 'the end of a reassignment')
}

async function elect({ rig }: FaultContext, placements: readonly Placement[]): Promise<number> {
  const byTopic = Map.groupBy(placements, ({ topic }) => topic)
  const partitions = new Map(
    [...byTopic].map(([topic, each]) => [topic, each.map(({ partition }) => partition)]),
  )
  return electPreferred(rig.cluster.running[0]!.node.broker, partitions)
}

/** The partitions of Postrider's topics, and what coordinates its groups. */
const ours = async ({ rig }: FaultContext) =>
  (await rig.state.partitions()).filter(
    ({ topic }) => !topic.startsWith('__') || topic === '__consumer_offsets',
  )

export const placementFaults = {
  'leaders-elected': {
    lock: 'infrastructure',
    async inject(context) {
      const { random } = context
      let moved = 0
      const times = random.between(1, 4)
      for (let left = times; left > 0; left--) {
        const chosen = (await ours(context)).filter(() => random.chance(0.6))
        // Another replica is the preferred one from now on.
        const placements = chosen.map((each) => ({ ...each, replicas: random.shuffled(each.replicas) }))
        await place(context, placements)
        moved += await elect(context, placements)
        await pause(seconds(random, 1, 4))
      }
      await recovered(context, running(context), 'leaders were elected', 'infrastructure')
      return `${moved} partitions got another leader, in ${times} elections`
    },
  },
  'partitions-reassigned': {
    lock: 'infrastructure',
    async inject(context) {
      const { random, rig } = context
      const chosen = (await ours(context)).filter(() => random.chance(0.5))
      const all = rig.cluster.seats.map(({ id }) => id)
      // One replica of each goes, its leader among them, and is copied from its beginning when it comes back.
      const fewer = chosen.map((each) => ({ ...each, replicas: random.shuffled(all).slice(1) }))
      await place(context, fewer)
      await pause(seconds(random, 0, 3))
      const before = fewer.map(({ topic, partition, replicas }) => {
        const missing = all.filter((id) => !replicas.includes(id))
        return { topic, partition, replicas: random.shuffled([...replicas, ...missing]).slice(0, copiesOf) }
      })
      await place(context, before)
      await elect(context, before)
      await recovered(context, running(context), 'partitions were reassigned', 'infrastructure')
      return `${chosen.length} partitions moved to two brokers, and back to three`
    },
  },
  'coordinator-moved': {
    lock: 'infrastructure',
    async inject(context) {
      const { rig, random } = context
      const { groupId } = rig.config
      const moved: string[] = []
      for (const group of [groupId, `${groupId}.retries`]) {
        const seat = await rig.state.coordinatorOf(group)
        const partition = await rig.state.coordinatingPartition(group)
        const others = random.shuffled(
          rig.cluster.seats.filter(({ id }) => id !== seat.id).map(({ id }) => id),
        )
        const placement = { topic: '__consumer_offsets', partition, replicas: [...others, seat.id] }
        await place(context, [placement])
        await elect(context, [placement])
        moved.push(`${group} from broker ${seat.id} to ${others[0]}`)
        await pause(seconds(random, 0, 2))
      }
      await recovered(context, running(context), 'its coordinator moved', 'infrastructure')
      return `the coordinator of ${moved.join(', of ')}`
    },
  },
} satisfies Partial<Record<FaultKind, Fault>>
