import type { Admin, Kafka, PartitionMetadata } from 'kafkajs'
import { describeTopics, type FoundTopic } from '../../adapters/kafka/admin/topic-settings.ts'
import { topicSpecs, type TopicConfig } from '../../adapters/kafka/admin/topic-specs.ts'
import { checkTopics, retryTopics, type TopicProblem } from '../../adapters/kafka/admin/topics.ts'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { registeredSubjects } from '../../adapters/schema-registry/subjects.ts'
import { Registry } from '../../adapters/schema-registry/registry.ts'
import type { Context } from '../../cli/context.ts'
import { messageOf } from '../../errors.ts'
import {
  type ClusterState,
  type TopicState,
  InfrastructureView,
  type Infrastructure,
} from './infrastructure.ts'

/** Which brokers there are, and how the deployment's topics are set up. Throws `kafka_unavailable` or `setup`. */
export function clusterState(kafka: Kafka, config: TopicConfig): Promise<ClusterState> {
  // A person waits for the answer.
  return withAdmin(kafka, (admin) => describe(admin, config), { retry: { retries: 1 } })
}

async function describe(admin: Admin, config: TopicConfig): Promise<ClusterState> {
  const [{ clusterId, controller, brokers }, former] = await Promise.all([
    admin.describeCluster(),
    retryTopics(admin, config.topicPrefix),
  ])
  const wanted = topicSpecs(config).map(({ name }) => name)
  const names = [...new Set([...wanted, ...former.map(({ topic }) => topic)])]
  const [found, problems] = await Promise.all([
    describeTopics(
      admin,
      names.map((name) => ({ name })),
    ),
    checkTopics(admin, config),
  ])
  const existing = names.filter((name) => found.has(name))
  const metadata = existing.length === 0 ? [] : (await admin.fetchTopicMetadata({ topics: existing })).topics
  const partitionsOf = new Map(metadata.map(({ name, partitions }) => [name, partitions]))
  return {
    clusterId,
    brokers: brokers
      .map(({ nodeId, host, port }) => ({ id: nodeId, host, port, isController: nodeId === controller }))
      .sort((a, b) => a.id - b.id),
    topics: names.map((name) => stateOf(name, found.get(name), partitionsOf.get(name) ?? [], problems)),
  }
}

function stateOf(
  name: string,
  found: FoundTopic | undefined,
  partitions: readonly PartitionMetadata[],
  problems: readonly TopicProblem[],
): TopicState {
  const number = (key: string): number | null => {
    const value = found?.values.get(key)
    return value === undefined ? null : Number(value)
  }
  const cleanupPolicy = found?.values.get('cleanup.policy') ?? null
  const retentionMs = number('retention.ms')
  const isLimited = retentionMs !== null && retentionMs >= 0 && cleanupPolicy !== 'compact'
  return {
    name,
    exists: found !== undefined,
    partitions: found?.partitions ?? 0,
    copies: found?.copies ?? 0,
    underReplicated: partitions.filter(({ isr, replicas }) => isr.length < replicas.length).length,
    withoutLeader: partitions.filter(({ leader }) => leader < 0).length,
    cleanupPolicy,
    retentionMs: isLimited ? retentionMs : null,
    maxMessageBytes: number('max.message.bytes'),
    problems: problems
      .filter(({ topic }) => topic === name)
      .map(({ severity, message }) => ({ severity, message })),
  }
}

/** Kafka, the registry and the topics as they are now, for the command and the API. */
export function openInfrastructure({ config, kafka }: Context): InfrastructureView {
  const registry = new Registry(config.registry)
  return new InfrastructureView(async () => {
    const [cluster, subjects] = await Promise.allSettled([
      clusterState(kafka, config),
      registeredSubjects(registry, config),
    ])
    const { topics, ...known } =
      cluster.status === 'fulfilled' ? cluster.value : { clusterId: null, brokers: [], topics: [] }
    return {
      kafka: { problem: problemOf(cluster), addresses: [...config.kafka.brokers], ...known },
      registry: {
        problem: problemOf(subjects),
        url: registry.url,
        subjects: subjects.status === 'fulfilled' ? subjects.value : [],
      },
      topics,
    } satisfies Omit<Infrastructure, 'at'>
  }, Date.now)
}

const problemOf = (settled: PromiseSettledResult<unknown>): string | null =>
  settled.status === 'rejected' ? messageOf(settled.reason) : null
