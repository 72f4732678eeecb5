import { setTimeout as delay } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import type { Admin, Kafka, PartitionMetadata } from 'kafkajs'
import { Brokers } from '../link/brokers.ts'
import { durabilityOf, meets, type TopicSpec } from './topic-specs.ts'

const { ConfigResourceTypes, ConfigSource } = kafkajs

/** How long brokers may take to learn of topics and settings that are new. */
const knownWithinMs = 10_000
const askAgainMs = 50

/** An existing topic as it stands. */
export interface FoundTopic {
  partitions: number
  /** The fewest of any partition. */
  copies: number
  /** Effective values, the brokers' defaults included. */
  values: Map<string, string>
  /** What is set on the topic itself. */
  overrides: Map<string, string>
}

/**
 * The topics that exist, of those asked for. Listed first, for asking about a topic can create it.
 *
 * @param known exist, whether or not the broker that is asked has heard of them yet
 */
export async function describeTopics(
  admin: Admin,
  specs: readonly Pick<TopicSpec, 'name'>[],
  known: readonly string[] = [],
): Promise<Map<string, FoundTopic>> {
  const existing = new Set([...(await admin.listTopics()), ...known])
  const topics = specs.map(({ name }) => name).filter((name) => existing.has(name))
  if (topics.length === 0) return new Map()
  const resources = topics.map((name) => ({ type: ConfigResourceTypes.TOPIC, name }))
  const [metadata, configs] = await Promise.all([
    untilTopicsKnown(() => admin.fetchTopicMetadata({ topics })),
    untilTopicsKnown(() => admin.describeConfigs({ includeSynonyms: false, resources })),
  ])
  const partitionsOf = new Map(metadata.topics.map((topic) => [topic.name, topic.partitions]))
  return new Map(
    configs.resources.map(({ resourceName, configEntries }) => {
      const own = configEntries.filter(({ configSource }) => configSource === ConfigSource.TOPIC_CONFIG)
      const pairs = (entries: typeof configEntries) =>
        new Map(entries.map(({ configName, configValue }) => [configName, configValue]))
      return [
        resourceName,
        {
          partitions: partitionsOf.get(resourceName)?.length ?? 0,
          copies: fewestCopies(partitionsOf.get(resourceName) ?? []),
          values: pairs(configEntries),
          overrides: pairs(own),
        },
      ]
    }),
  )
}

/** Asks again, for 10 s: the broker that is asked may not know yet of a topic that another one has listed. */
async function untilTopicsKnown<T>(ask: () => Promise<T>): Promise<T> {
  const deadline = performance.now() + knownWithinMs
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const isUnknown = (error as { type?: string }).type === 'UNKNOWN_TOPIC_OR_PARTITION'
      if (!isUnknown || performance.now() > deadline) throw error
      await delay(askAgainMs)
    }
  }
}

const fewestCopies = (partitions: readonly PartitionMetadata[]): number =>
  partitions.reduce(
    (min, { replicas }) => Math.min(min, replicas.length),
    partitions[0]?.replicas.length ?? 0,
  )

/** A `min.insync.replicas` beyond the one that is needed is as good. */
export const isDurable = (key: string, set: string | undefined, value: string): boolean =>
  set === value || (key === 'min.insync.replicas' && Number(set) > Number(value))

/** Settings of the topic that are not as they should be, with what they should be. */
function wrongSettings(spec: TopicSpec, found: FoundTopic, scope: 'all' | 'durability'): Map<string, string> {
  const wrong = new Map<string, string>()
  for (const [key, value] of Object.entries(durabilityOf(found.copies)))
    if (!isDurable(key, found.values.get(key), value)) wrong.set(key, value)
  if (scope === 'durability') return wrong
  for (const [key, requirement] of Object.entries({ ...spec.required, ...spec.advised }))
    if (!meets(found.values.get(key), requirement)) wrong.set(key, spec.settings[key]!)
  return wrong
}

/** Sets what is wrong on these topics; what else is set on them stays. Returns what it set, by topic. */
export async function fixTopics(
  admin: Admin,
  specs: readonly TopicSpec[],
  before: ReadonlyMap<string, FoundTopic>,
  scope: 'all' | 'durability',
): Promise<Map<string, Map<string, string>>> {
  const fixed = new Map<string, Map<string, string>>()
  const resources = specs.flatMap((spec) => {
    const found = before.get(spec.name)
    if (found === undefined) return []
    const wrong = wrongSettings(spec, found, scope)
    if (wrong.size === 0) return []
    fixed.set(spec.name, wrong)
    // The request that kafkajs knows replaces all of a topic's settings.
    const settings = new Map([...found.overrides, ...wrong])
    const configEntries = [...settings].map(([name, value]) => ({ name, value }))
    return [{ type: ConfigResourceTypes.TOPIC, name: spec.name, configEntries }]
  })
  if (resources.length > 0) await admin.alterConfigs({ validateOnly: false, resources })
  return fixed
}

/**
 * Waits until each broker knows the settings, by topic: the controller takes a change before them, and any of them may
 * be asked next. A broker that cannot be asked learns of them before it serves again, and is not waited for.
 */
export async function untilBrokersKnow(
  kafka: Kafka,
  admin: Admin,
  settings: ReadonlyMap<string, ReadonlyMap<string, string>>,
): Promise<void> {
  if (settings.size === 0) return
  const { brokers } = await admin.describeCluster()
  const topics = [...settings.keys()]
  const link = new Brokers(kafka, Infinity)
  for (const topic of topics) link.follow(topic)
  const deadline = performance.now() + knownWithinMs
  const isKnownBy = async (nodeId: number): Promise<boolean> => {
    const left = Math.max(1, deadline - performance.now())
    const answer = await (await link.connection(nodeId)).topicSettings(topics, left)
    return answer.resources.every(({ resourceName, configEntries }) =>
      [...settings.get(resourceName)!].every(([key, value]) =>
        configEntries.some(({ configName, configValue }) => configName === key && configValue === value),
      ),
    )
  }
  const wait = async (nodeId: number): Promise<void> => {
    await link.refresh()
    while (!(await isKnownBy(nodeId)) && performance.now() < deadline) await delay(askAgainMs)
  }
  try {
    await Promise.allSettled(brokers.map(({ nodeId }) => wait(nodeId)))
  } finally {
    link.close()
  }
}
