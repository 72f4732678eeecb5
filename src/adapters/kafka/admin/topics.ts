import { setTimeout as delay } from 'node:timers/promises'
import type { Admin, ITopicConfig, Kafka } from 'kafkajs'
import { tierOfTopic, topicNames, type Tier } from '../../../core/topics.ts'
import { PostriderError } from '../../../errors.ts'
import { describeTopics, fixTopics, isDurable, untilBrokersKnow, type FoundTopic } from './topic-settings.ts'
import {
  callsKeptAtMostMs,
  describeRequirement,
  durabilityOf,
  meets,
  topicSpecs,
  type TopicConfig,
  type TopicSpec,
} from './topic-specs.ts'

/** Kafka's error for a topic that another process has just created. */
const alreadyExists = 'TOPIC_ALREADY_EXISTS'
const notAllowed = 'TOPIC_AUTHORIZATION_FAILED'

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

/**
 * Creates the topics that are missing, and says what is wrong with those that exist. With `fix` their settings
 * are fixed as well; partitions never are, for users would change partitions and lose their order. Idempotent.
 * Throws PostriderError 'setup' when the cluster refuses a topic.
 */
export async function ensureTopics(
  kafka: Kafka,
  admin: Admin,
  config: TopicConfig,
  options: { fix?: boolean } = {},
): Promise<TopicReport[]> {
  const specs = topicSpecs(config)
  const before = await describeTopics(admin, specs)
  const missing = specs.filter(({ name }) => !before.has(name))
  if (missing.length > 0) await create(admin, missing, config.replicationFactor)
  const created = missing.map(({ name }) => name)
  const wrong = options.fix ? before : await describeTopics(admin, missing, created)
  const fixed = await fixTopics(admin, specs, wrong, options.fix ? 'all' : 'durability')
  await untilBrokersKnow(kafka, admin, fixed)
  const after = await describeTopics(admin, specs, created)
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
  const found = await describeTopics(admin, specs)
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
    .sort((a, b) => a.tier.delayMs - b.tier.delayMs || (a.topic < b.topic ? -1 : 1))
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

export function problemsOf(spec: TopicSpec, found: FoundTopic | undefined): TopicProblem[] {
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
      // The error has said so.
      const needed = spec.required[key]
      if (severity === 'warning' && needed !== undefined && !meets(value, needed)) continue
      const should = `${severity === 'error' ? 'must' : 'should'} be ${describeRequirement(requirement)}`
      problems.push(
        problem(severity, `has ${key}=${value ?? '(none)'}, which ${should}: run \`postrider setup --fix\``),
      )
    }
  const kept = found.values.get('retention.ms')
  // `--fix` does not touch it: what is kept so long would be gone at once.
  if (spec.holdsCalls && kept !== undefined && !meets(kept, { min: 0, max: callsKeptAtMostMs }))
    problems.push(
      problem(
        'warning',
        `has retention.ms=${kept}, and should have ${callsKeptAtMostMs} at most: deletions of users are forgotten after 40 days, and their calls that are kept for longer are shown and can be sent again`,
      ),
    )
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

const pauseMs = 50

/**
 * Creates topics and resolves once a broker knows each of them and the leader of each of its partitions. Throws what
 * `admin.createTopics` throws; a topic that exists already is no error by itself.
 *
 * kafkajs can wait for leaders too, but on a busy broker it gives up at once: when the topic is not known yet
 * (UNKNOWN_TOPIC_OR_PARTITION) rather than known without a leader.
 */
export async function createTopics(
  admin: Admin,
  topics: readonly ITopicConfig[],
  timeoutMs = 15_000,
): Promise<void> {
  const names = topics.map(({ topic }) => topic)
  const deadline = performance.now() + timeoutMs
  await admin.createTopics({ topics: [...topics], waitForLeaders: false, timeout: timeoutMs })
  for (;;) {
    try {
      const found = await admin.fetchTopicMetadata({ topics: names })
      if (found.topics.every(({ partitions }) => partitions.every(({ leader }) => leader >= 0))) return
      if (performance.now() > deadline)
        throw new Error(`no leader for ${names.join(', ')} in ${timeoutMs} ms`)
    } catch (error) {
      const canRetry = error instanceof Error && 'retriable' in error && error.retriable === true
      if (!canRetry || performance.now() > deadline) throw error
    }
    await delay(pauseMs)
  }
}
