import { setTimeout as delay } from 'node:timers/promises'
import kafkajs from 'kafkajs'
import type { Admin, ITopicConfig, PartitionMetadata } from 'kafkajs'
import { PostriderError } from '../../errors.ts'
import { tierOfTopic, topicNames } from '../../core/topics.ts'
import type { Tier } from '../../core/topics.ts'
import { describeRequirement, durabilityOf, meets, topicSpecs } from './topic-specs.ts'
import type { TopicConfig, TopicSpec } from './topic-specs.ts'
import { createTopics } from './create-topics.ts'

const { ConfigResourceTypes, ConfigSource } = kafkajs

/** Kafka's error for a topic that somebody else has just created. */
const alreadyExists = 'TOPIC_ALREADY_EXISTS'
const notAllowed = 'TOPIC_AUTHORIZATION_FAILED'
/** How long brokers may take to learn of settings that were changed. */
const knownWithinMs = 5_000
const askAgainMs = 50

export interface TopicProblem {
  topic: string
  /** `error` loses or holds up records; a `warning` may be meant so. */
  severity: 'error' | 'warning'
  /** One line: what is wrong, and how to fix it. */
  message: string
}

export interface TopicReport {
  topic: string
  result: 'created' | 'present' | 'updated'
  partitions: number
  problems: TopicProblem[]
}

/** An existing topic as it stands. */
interface Found {
  partitions: number
  /** The fewest of any partition. */
  copies: number
  /** Effective values, the brokers' defaults included. */
  values: Map<string, string>
  /** What is set on the topic itself. */
  overrides: Map<string, string>
}

/**
 * Creates the topics that are missing, and says what is wrong with those that exist. With `fix` their settings
 * are fixed as well; partitions never are, for users would change partitions and lose their order. Idempotent.
 * Throws PostriderError 'setup' when the cluster refuses a topic.
 */
export async function ensureTopics(
  admin: Admin,
  config: TopicConfig,
  options: { fix?: boolean } = {},
): Promise<TopicReport[]> {
  const specs = topicSpecs(config)
  const before = await describe(admin, specs)
  const missing = specs.filter(({ name }) => !before.has(name))
  if (missing.length > 0) await create(admin, missing, config.replicationFactor)
  const wrong = options.fix ? before : await describe(admin, missing)
  const fixed = await fix(admin, specs, wrong, options.fix ? 'all' : 'durability')
  const after = await describeFixed(admin, specs, fixed)
  return specs.map((spec) => {
    const found = after.get(spec.name)
    const result = !before.has(spec.name) ? 'created' : fixed.has(spec.name) ? 'updated' : 'present'
    return {
      topic: spec.name,
      result,
      partitions: found?.partitions ?? spec.partitions,
      problems: problemsOf(spec, found),
    }
  })
}

/**
 * What is wrong with the topics, for a process that starts. `only` names the topics that the process uses; all of
 * the deployment's when left out.
 */
export async function checkTopics(
  admin: Admin,
  config: TopicConfig,
  only?: readonly string[],
): Promise<TopicProblem[]> {
  const specs = topicSpecs(config).filter(({ name }) => only === undefined || only.includes(name))
  const found = await describe(admin, specs)
  return specs.flatMap((spec) => problemsOf(spec, found.get(spec.name)))
}

/** Every retry topic that exists, those of tiers that were taken out of the settings included, by rising delay. */
export async function retryTopics(
  admin: Admin,
  topicPrefix: string,
): Promise<{ topic: string; tier: Tier }[]> {
  const names = topicNames(topicPrefix)
  return (await admin.listTopics())
    .map((topic) => ({ topic, tier: tierOfTopic(names, topic) }))
    .filter((entry): entry is { topic: string; tier: Tier } => entry.tier !== null)
    .sort((a, b) => a.tier.delayMs - b.tier.delayMs)
}

async function create(admin: Admin, specs: readonly TopicSpec[], replicationFactor: number): Promise<void> {
  const topics = specs.map(({ name, partitions, settings }): ITopicConfig => ({
    topic: name,
    numPartitions: partitions,
    replicationFactor,
    configEntries: Object.entries(settings).map(([key, value]) => ({ name: key, value })),
  }))
  try {
    await createTopics(admin, topics)
  } catch (error) {
    const refused = refusals(error)
    if (refused.length === 0) throw error
    const real = refused.filter(({ type }) => type !== alreadyExists)
    // What it means that the user may not is for the caller to say.
    if (real.some(({ type }) => type === notAllowed)) throw error
    if (real.length > 0) throw await refusal(admin, real[0]!, replicationFactor)
  }
}

interface Refusal {
  type: string
  topic?: string
  message: string
}

/** kafkajs throws one error that holds one for each topic. */
function refusals(error: unknown): Refusal[] {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
    ? (error.errors as Refusal[])
    : []
}

async function refusal(admin: Admin, { type, topic, message }: Refusal, copies: number): Promise<Error> {
  const about = `Kafka refuses to create ${topic ?? 'a topic'}`
  if (type !== 'INVALID_REPLICATION_FACTOR') return new PostriderError('setup', `${about}: ${message}`)
  const { brokers } = await admin.describeCluster()
  return new PostriderError(
    'setup',
    `${about} with ${copies} copies: the cluster has ${brokers.length} broker${brokers.length === 1 ? '' : 's'}; set REPLICATION_FACTOR accordingly`,
  )
}

/** The topics that exist, of those asked for. Listed first, for asking about a topic can create it. */
async function describe(admin: Admin, specs: readonly TopicSpec[]): Promise<Map<string, Found>> {
  const existing = new Set(await admin.listTopics())
  const topics = specs.map(({ name }) => name).filter((name) => existing.has(name))
  if (topics.length === 0) return new Map()
  const [metadata, configs] = await Promise.all([
    admin.fetchTopicMetadata({ topics }),
    admin.describeConfigs({
      includeSynonyms: false,
      resources: topics.map((name) => ({ type: ConfigResourceTypes.TOPIC, name })),
    }),
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

const fewestCopies = (partitions: readonly PartitionMetadata[]): number =>
  partitions.reduce(
    (least, { replicas }) => Math.min(least, replicas.length),
    partitions[0]?.replicas.length ?? 0,
  )

function problemsOf(spec: TopicSpec, found: Found | undefined): TopicProblem[] {
  const problem = (severity: TopicProblem['severity'], message: string): TopicProblem => ({
    topic: spec.name,
    severity,
    message: `topic ${spec.name} ${message}`,
  })
  if (found === undefined) return [problem('error', 'is missing: run `postrider setup`')]
  const problems: TopicProblem[] = []
  if (spec.exactPartitions && found.partitions !== spec.partitions)
    problems.push(
      problem(
        'error',
        `has ${found.partitions} partitions and must have ${spec.partitions}, for its order counts: delete it and run \`postrider setup\`, or use another TOPIC_PREFIX`,
      ),
    )
  for (const [severity, requirements] of [
    ['error', spec.required],
    ['warning', spec.advised],
  ] as const)
    for (const [key, requirement] of Object.entries(requirements)) {
      const value = found.values.get(key)
      if (meets(value, requirement)) continue
      const should = `${severity === 'error' ? 'must' : 'should'} be ${describeRequirement(requirement)}`
      problems.push(
        problem(severity, `has ${key}=${value ?? '(none)'}, which ${should}: run \`postrider setup --fix\``),
      )
    }
  for (const [key, value] of Object.entries(durabilityOf(found.copies))) {
    const set = found.values.get(key)
    if (isDurable(key, set, value)) continue
    problems.push(
      problem(
        'warning',
        `has ${key}=${set ?? '(none)'} with ${found.copies} copies, so that records that were acknowledged can be lost with a broker; it should be ${value}: run \`postrider setup --fix\``,
      ),
    )
  }
  return problems
}

/** A `min.insync.replicas` beyond the one that is needed is as good. */
const isDurable = (key: string, set: string | undefined, value: string): boolean =>
  set === value || (key === 'min.insync.replicas' && Number(set) > Number(value))

/** Settings of the topic that are not as they should be, with what they should be. */
function wrongSettings(spec: TopicSpec, found: Found, scope: 'all' | 'durability'): Map<string, string> {
  const wrong = new Map<string, string>()
  for (const [key, value] of Object.entries(durabilityOf(found.copies)))
    if (!isDurable(key, found.values.get(key), value)) wrong.set(key, value)
  if (scope === 'durability') return wrong
  for (const [key, requirement] of Object.entries({ ...spec.advised, ...spec.required }))
    if (!meets(found.values.get(key), requirement)) wrong.set(key, spec.settings[key]!)
  return wrong
}

/** Sets what is wrong on these topics; what else is set on them stays. Returns what it set, by topic. */
async function fix(
  admin: Admin,
  specs: readonly TopicSpec[],
  before: ReadonlyMap<string, Found>,
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

/** The controller takes a change before every broker knows of it: any of them may be asked. */
async function describeFixed(
  admin: Admin,
  specs: readonly TopicSpec[],
  fixed: ReadonlyMap<string, ReadonlyMap<string, string>>,
): Promise<Map<string, Found>> {
  const deadline = performance.now() + knownWithinMs
  for (;;) {
    const found = await describe(admin, specs)
    const isKnown = [...fixed].every(([topic, settings]) =>
      [...settings].every(([key, value]) => found.get(topic)?.values.get(key) === value),
    )
    if (isKnown || performance.now() > deadline) return found
    await delay(askAgainMs)
  }
}
