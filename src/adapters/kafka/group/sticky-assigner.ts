import kafkajs from 'kafkajs'
import type { Assigner, Cluster, GroupMember as KafkaGroupMember, PartitionAssigner } from 'kafkajs'
import { assignSticky, type GroupMember } from '../../../core/offsets/sticky-assignment.ts'
import type { JoinAware } from '../patches/wait-before-join.ts'

const { AssignerProtocol } = kafkajs
const { MemberAssignment, MemberMetadata } = AssignerProtocol

/** What a member says of itself when it joins: it travels in the protocol's userData, as JSON. */
export interface OwnedPartitions {
  owned: Record<string, number[]>
  generation: number
}

const nothing: OwnedPartitions = { owned: {}, generation: 0 }

function parseOwned(userData: Buffer): OwnedPartitions {
  try {
    const { owned, generation } = JSON.parse(userData.toString()) as Partial<OwnedPartitions>
    return owned && typeof generation === 'number' ? { owned, generation } : nothing
  } catch {
    return nothing
  }
}

/**
 * A partition assigner for kafkajs that moves as few partitions as it can and honours each member's topics.
 * kafkajs's own shares the leader's topics out round-robin to all members, whatever they subscribed to.
 * @param ownership what this member owns at the moment
 * @param beforeJoin see JoinAware
 */
export function stickyAssigner(
  ownership: () => OwnedPartitions,
  beforeJoin: JoinAware['beforeJoin'],
): PartitionAssigner {
  return ({ cluster }: { cluster: Cluster }): Assigner & JoinAware => ({
    name: 'postrider-sticky',
    version: 1,
    beforeJoin,

    protocol({ topics }: { topics: string[] }) {
      const userData = Buffer.from(JSON.stringify(ownership()))
      return { name: 'postrider-sticky', metadata: MemberMetadata.encode({ version: 1, topics, userData }) }
    },

    async assign({ members, topics }: { members: KafkaGroupMember[]; topics: string[] }) {
      const decoded = members.map(({ memberId, memberMetadata }): GroupMember => {
        const metadata = MemberMetadata.decode(memberMetadata)
        const { owned, generation } = parseOwned(metadata?.userData ?? Buffer.alloc(0))
        return { id: memberId, topics: metadata?.topics ?? topics, owned, generation }
      })
      const partitions = new Map<string, number[]>()
      for (const topic of new Set(decoded.flatMap((member) => member.topics))) {
        // Topics that only others subscribed to are not in this client's metadata yet.
        await cluster.addTargetTopic(topic).catch(() => {})
        partitions.set(
          topic,
          cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId),
        )
      }
      return [...assignSticky(decoded, partitions)].map(([memberId, assignment]) => ({
        memberId,
        memberAssignment: MemberAssignment.encode({ version: 1, assignment, userData: Buffer.alloc(0) }),
      }))
    },
  })
}
