import type { Admin } from 'kafkajs'
import { until, within } from '../../support/until.ts'
import type { BrokerSeat, Cluster } from './cluster.ts'
import { quorumLeader } from '../load/raw-request.ts'

/** kafkajs gives up a request after 30 s and asks again; what takes longer than this never comes. */
const metadataMs = 150_000

/** What the brokers say of themselves, past the proxies. */
export class ClusterState {
  readonly #cluster: Cluster
  readonly #admin: Admin

  constructor(cluster: Cluster, admin: Admin) {
    this.#cluster = cluster
    this.#admin = admin
  }

  /** Every partition of every topic, internal ones too. */
  async partitions(): Promise<
    { topic: string; partition: number; leader: number; replicas: number[]; isr: number[] }[]
  > {
    const { topics } = await within(metadataMs, this.#admin.fetchTopicMetadata(), 'an answer of the brokers')
    return topics.flatMap(({ name, partitions }) =>
      partitions.map(({ partitionId, leader, replicas, isr }) => ({
        ...{ topic: name, partition: partitionId, leader, replicas, isr },
      })),
    )
  }

  /** Rejects when some replica is still behind after so long. */
  async whole(withinMs: number): Promise<void> {
    const isWhole = async () => {
      try {
        const all = await this.partitions()
        return all.every(({ leader, replicas, isr }) => leader > 0 && isr.length === replicas.length)
      } catch {
        return false
      }
    }
    await until(isWhole, withinMs, 'a full set of in-sync replicas')
  }

  /** The broker that leads the most partitions of those topics (of all of them unless told). */
  async leaderOfMost(topics?: readonly string[]): Promise<BrokerSeat> {
    const counts = new Map<number, number>()
    for (const { topic, leader } of await this.partitions())
      if (leader > 0 && (!topics || topics.includes(topic))) counts.set(leader, (counts.get(leader) ?? 0) + 1)
    const [max] = [...counts].sort(([, a], [, b]) => b - a)
    if (!max) throw new Error('no partition has a leader')
    return this.#cluster.seat(max[0])
  }

  /** The broker that coordinates the consumer group. */
  async coordinatorOf(groupId: string): Promise<BrokerSeat> {
    const partition = await this.coordinatingPartition(groupId)
    const all = await this.partitions()
    const found = all.find((each) => each.topic === '__consumer_offsets' && each.partition === partition)!
    return this.#cluster.seat(found.leader)
  }

  /** The partition of `__consumer_offsets` whose leader coordinates the group: as Kafka's `Utils.abs(hashCode)`. */
  async coordinatingPartition(groupId: string): Promise<number> {
    let hash = 0
    for (let at = 0; at < groupId.length; at++) hash = (Math.imul(31, hash) + groupId.charCodeAt(at)) | 0
    const all = await this.partitions()
    return Math.abs(hash) % all.filter(({ topic }) => topic === '__consumer_offsets').length
  }

  /** The broker whose controller leads the quorum now. */
  async controller(): Promise<BrokerSeat> {
    for (const { node } of this.#cluster.running) {
      const leader = await quorumLeader(node.broker).catch(() => null)
      if (leader !== null) return this.#cluster.seat(leader)
    }
    throw new Error('no controller leads')
  }
}
