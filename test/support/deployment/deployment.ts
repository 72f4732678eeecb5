import type { TestContext } from 'node:test'
import kafkajs, { type Admin, type Kafka, type Producer } from 'kafkajs'
import pino from 'pino'
import { SettingsLog } from '../../../src/adapters/folded-log/settings-log.ts'
import { ensureTopics } from '../../../src/adapters/kafka/admin/topics.ts'
import { withAdmin } from '../../../src/adapters/kafka/admin/with-admin.ts'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { readRange } from '../../../src/adapters/kafka/read/read-range.ts'
import { fetchRange, type OffsetRange } from '../../../src/adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../../../src/adapters/kafka/read/topic-record.ts'
import type { ForwarderCounts } from '../../../src/adapters/metrics/forwarder-metrics.ts'
import { createCodecs, type Codecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../../src/adapters/schema-registry/registry.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { recordTopics, registerSchemas, subjectOf } from '../../../src/adapters/schema-registry/subjects.ts'
import { createSecrets, type Secrets } from '../../../src/adapters/secrets.ts'
import { contextOf } from '../../../src/cli/context.ts'
import { openForwarder, type OpenForwarderOptions } from '../../../src/cli/open-forwarder.ts'
import type { PartReport } from '../../../src/cli/process-reports.ts'
import { loadConfig, type Config } from '../../../src/config/config.ts'
import { partitionKey, type AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { sourceOf } from '../../../src/core/call/built-in-source.ts'
import type { DeadLetter } from '../../../src/core/delivery/delivery.ts'
import { topicNames, type TopicNames } from '../../../src/core/topics.ts'
import { newSecret } from '../../../src/operators/settings/secrets.ts'
import { silentLog } from '../silent-log.ts'
import { until } from '../until.ts'
import { registerSchema } from './registry.ts'
import { brokers, registryUrl, uniquePrefix } from './rig.ts'

/** A log line, parsed. */
export type LogLine = Record<string, unknown> & { level: number; msg: string }

export interface RunningForwarder {
  counts: ForwarderCounts
  /** What its process would report of it. */
  report: PartReport
  log: LogLine[]
  /** Null when it takes work. */
  problem(): string | null
  /** What does not keep it from work. */
  warning(): string | null
  /** Stops it in good order; rejects with what it failed with. */
  stop(): Promise<void>
}

/**
 * A deployment of its own on the run's Kafka and registry: topics, schemas, settings, and whatever forwarders a
 * test starts. All of it is gone after the test.
 */
export interface Deployment {
  env: Record<string, string>
  config: Config
  topics: TopicNames
  kafka: Kafka
  admin: Admin
  producer: Producer
  codecs: Codecs
  secrets: Secrets
  settings: SettingsLog
  /** One source (`shop` unless named) and one destination of it. */
  destination(given: {
    id?: string
    source?: string
    urls: string[]
    secret?: string | null
    headers?: { urlNumber: number; name: string; value: string }[]
  }): Promise<void>
  produce(calls: readonly AnalyticsCall[]): Promise<void>
  /** Starts a forwarder in this process and waits until it takes work. */
  forwarder(options?: Partial<OpenForwarderOptions>): Promise<RunningForwarder>
  /** Ended before the deployment is, by a test that does not end it itself. */
  endFirst(stop: () => Promise<unknown>): void
  /** What the topic holds now. */
  read(topic: string): Promise<TopicRecord[]>
  /** Which offsets the topic's partitions hold now; kafkajs's admin would fail while a leader is chosen. */
  ranges(topic: string): Promise<OffsetRange[]>
  deadLetters(): Promise<DeadLetter[]>
  /** Committed offset of each partition of the topic; 0 where nothing was committed. */
  committed(topic: string, groupId?: string): Promise<number[]>
  /** Resolves once the calls group has committed everything that the calls topic holds. */
  drained(withinMs?: number): Promise<void>
}

const secretsKey = '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef'

export async function deploy(
  t: TestContext,
  env: Record<string, string> = {},
  prefix = uniquePrefix(),
): Promise<Deployment> {
  const fullEnv = {
    KAFKA_BROKERS: brokers().join(','),
    SCHEMA_REGISTRY_URL: registryUrl(),
    TOPIC_PREFIX: prefix,
    GROUP_ID: `${prefix}group`,
    SECRETS_KEY: secretsKey,
    RETRY_TIERS: '300ms,600ms',
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    PARTITIONS_CALLS: '4',
    PARTITIONS_RETRY: '2',
    PARTITIONS_DEAD_LETTERS: '1',
    PARTITIONS_DELIVERIES: '1',
    METRICS_PORT: '0',
    ...env,
  }
  const config = loadConfig(fullEnv)
  const topics = topicNames(prefix)
  const silent = silentLog
  const kafka = createKafka(config, silent)
  const admin = kafka.admin()
  await admin.connect()
  await ensureTopics(kafka, admin, config)
  await registerAll(config)
  const codecs = createCodecs({ registry: config.registry, topics, log: silent })
  await Promise.all([codecs.calls.ready(), codecs.settings.ready()])
  // Idempotent: where a broker refuses one partition, which it may just after the topic is made, kafkajs sends them all
  // again, and the others would have their records twice.
  const producer = kafka.producer({
    createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
    idempotent: true,
  })
  await producer.connect()
  const secrets = createSecrets(config.secretsKeys)
  const settings = new SettingsLog({
    kafka,
    topic: topics.settings,
    codec: codecs.settings,
    log: silent,
  })
  await settings.start()

  const forwarders = new Set<() => Promise<unknown>>()
  t.after(async () => {
    await Promise.all([...forwarders].map((stop) => stop().catch(() => {})))
    await settings.close()
    await producer.disconnect()
    await admin.disconnect()
    await withAdmin(kafka, (asked) => removeTopicsAndGroups(asked, prefix))
  })

  const read = async (topic: string): Promise<TopicRecord[]> => {
    const records: TopicRecord[] = []
    const range = readRange({ kafka, topic, log: silent })
    for await (const record of range) records.push(record)
    return records
  }
  const ranges = (topic: string) => fetchRange(kafka, topic)
  const committed = async (topic: string, groupId = config.groupId): Promise<number[]> => {
    const [found] = await admin.fetchOffsets({ groupId, topics: [topic] })
    return found!.partitions
      .sort((a, b) => a.partition - b.partition)
      .map(({ offset }) => Math.max(0, Number(offset)))
  }

  return {
    env: fullEnv,
    config,
    topics,
    kafka,
    admin,
    producer,
    codecs,
    secrets,
    settings,
    async destination({ id = 'crm', source = 'shop', urls, secret = 's3cret', headers = [] }) {
      // A console may have made the source a moment ago.
      await settings.catchUp(AbortSignal.timeout(20_000))
      if (!sourceOf(settings.state, source)) {
        await settings.execute({
          type: 'create_source',
          id: source,
          name: source,
          writeKey: `key-of-${source}`,
          enabled: true,
        })
      }
      await settings.execute({
        type: 'create_destination',
        id,
        name: id,
        sourceIds: [source],
        urls,
        headers: headers.map(({ value, ...header }) => ({
          ...header,
          value: newSecret(value, secrets),
        })),
        sharedSecret: secret === null ? null : newSecret(secret, secrets),
        enabled: true,
      })
    },
    async produce(calls) {
      for (let start = 0; start < calls.length; start += 1_000) {
        await producer.send({
          topic: topics.calls,
          acks: -1,
          messages: calls.slice(start, start + 1_000).map((call) => ({
            key: partitionKey(call),
            value: codecs.calls.encode(call),
          })),
        })
      }
    },
    async forwarder(options = {}) {
      const lines: LogLine[] = []
      const log = pino({ level: 'debug' }, { write: (line) => void lines.push(JSON.parse(line) as LogLine) })
      const context = contextOf({ config: options.config ?? config, log }, silent)
      const open = openForwarder({ ...context, ...options })
      const stopping = new AbortController()
      const ended = open.part.run(stopping.signal)
      let failure: unknown = null
      ended.catch((error: unknown) => (failure = error))
      const stop = async () => {
        forwarders.delete(stop)
        stopping.abort()
        await ended
      }
      forwarders.add(stop)
      const problem = () =>
        open.checks.map((check) => check.problem()).find((found) => found !== null) ?? null
      await until(() => {
        if (failure) throw failure as Error
        return problem() === null
      }, 20_000)
      const warning = () =>
        open.checks.map((check) => check.warning?.() ?? null).find((found) => found !== null) ?? null
      return { counts: open.counts, report: open.report, log: lines, problem, warning, stop }
    },
    endFirst: (stop) => void forwarders.add(stop),
    read,
    ranges,
    async deadLetters() {
      const records = await read(topics.deadLetters)
      return Promise.all(records.map(({ value }) => codecs.deadLetters.decode(value)))
    },
    committed,
    async drained(withinMs = 20_000) {
      await until(async () => {
        const asked = await unlessMoving(() => Promise.all([ranges(topics.calls), committed(topics.calls)]))
        if (asked === null) return false
        const [ends, offsets] = asked
        return ends.every(({ partition, high }) => offsets[partition]! >= high)
      }, withinMs)
    },
  }
}

/**
 * At the run's registry by one request a subject, for it is known that none is there; what `setup` asks before and after
 * takes more of the machine than all else of a deployment.
 */
async function registerAll(config: Config): Promise<void> {
  if (config.registry.url !== registryUrl()) {
    await registerSchemas(new Registry(config.registry), config)
    return
  }
  for (const [topic, name] of recordTopics(config))
    await registerSchema(subjectOf(topic), recordSchema(name).json)
}

/** Null while a leader or a coordinator moves: kafkajs's admin asks the one before, and does not wait for the next. */
export async function unlessMoving<T>(ask: () => Promise<T>): Promise<T | null> {
  try {
    return await ask()
  } catch (error) {
    if ((error as { retriable?: boolean }).retriable === true) return null
    throw error
  }
}

/** A line that a part logs, now or within `withinMs`. */
export async function logged(
  part: Pick<RunningForwarder, 'log'>,
  text: string,
  withinMs = 10_000,
): Promise<LogLine> {
  const find = () => part.log.find(({ msg }) => msg.includes(text))
  await until(() => find() !== undefined, withinMs, `the log line "${text}"`)
  return find()!
}

/** Of that prefix. Throws where a broker that has just started still loads its groups. */
async function removeTopicsAndGroups(admin: Admin, prefix: string): Promise<void> {
  const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
  await admin.deleteTopics({ topics }).catch(() => {})
  const { groups } = await admin.listGroups()
  const ours = groups.map(({ groupId }) => groupId).filter((id) => id.startsWith(prefix))
  if (ours.length > 0) await admin.deleteGroups(ours).catch(() => {})
}
