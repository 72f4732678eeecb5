// Before each fetch kafkajs 2.2.4 asks which partitions it has, which of them are paused, and who leads them: three
// lists that it sorts each time, as text, and one that it copies for each partition.
import { createRequire } from 'node:module'
import type { TopicPartitions } from './fetch-wait.ts'

interface SubscriptionState {
  assignedPartitionsByTopic: Record<string, TopicPartitions>
  isPaused(topic: string, partition: number): boolean
  assign(topicPartitions?: { topic: string; partitions?: number[] }[]): void
  assigned(): TopicPartitions[]
  active(): TopicPartitions[]
  paused(): TopicPartitions[]
}

interface ConsumerGroup {
  cluster: { findTopicPartitionMetadata(topic: string): { partitionId: number; leader: number | null }[] }
  /** Where brokers told to read a topic's partitions from, if not from their leaders (KIP-392). */
  preferredReadReplicasPerTopicPartition: Record<string, object>
  findReadReplicaForPartitions(topic: string, partitions: number[]): Record<number, number[]>
}

let installed = false

/** Has kafkajs's consumers find out faster what to fetch. Idempotent. */
export function planFetchesFaster(): void {
  if (installed) return
  installed = true
  const require = createRequire(import.meta.url)
  sortOnce((require('kafkajs/src/consumer/subscriptionState') as { prototype: SubscriptionState }).prototype)
  groupByLeader((require('kafkajs/src/consumer/consumerGroup') as { prototype: ConsumerGroup }).prototype)
}

/** Partitions are sorted when they are assigned; what is filtered of them stays so. */
function sortOnce(state: SubscriptionState): void {
  const { assign } = state
  state.assign = function (topicPartitions = []) {
    assign.call(
      this,
      topicPartitions.map(({ topic, partitions = [] }) => ({ topic, partitions: [...partitions].sort() })),
    )
  }
  const which = (of: SubscriptionState, isPaused: boolean): TopicPartitions[] =>
    Object.values(of.assignedPartitionsByTopic).map(({ topic, partitions }) => ({
      topic,
      partitions: partitions.filter((partition) => of.isPaused(topic, partition) === isPaused),
    }))
  // Copies, as they were: whoever gets them may change them.
  state.assigned = function () {
    return Object.values(this.assignedPartitionsByTopic).map(({ topic, partitions }) => ({
      topic,
      partitions: [...partitions],
    }))
  }
  state.active = function () {
    return which(this, false)
  }
  state.paused = function () {
    return which(this, true).filter(({ partitions }) => partitions.length > 0)
  }
}

/** Where no broker told to read from another one than the leader: with one that did it is kafkajs's to know. */
function groupByLeader(group: ConsumerGroup): void {
  const { findReadReplicaForPartitions } = group
  group.findReadReplicaForPartitions = function (topic, partitions) {
    const preferred = this.preferredReadReplicasPerTopicPartition[topic]
    if (preferred !== undefined && Object.keys(preferred).length > 0)
      return findReadReplicaForPartitions.call(this, topic, partitions)
    const leaders = new Map<number, number | null>()
    for (const { partitionId, leader } of this.cluster.findTopicPartitionMetadata(topic))
      leaders.set(partitionId, leader)
    const byLeader: Record<number, number[]> = {}
    for (const partition of partitions) {
      const leader = leaders.get(partition)
      if (leader === undefined) continue
      // It has a name for this.
      if (leader === null) return findReadReplicaForPartitions.call(this, topic, partitions)
      const list = byLeader[leader]
      if (list) list.push(partition)
      else byLeader[leader] = [partition]
    }
    return byLeader
  }
}
