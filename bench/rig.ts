import { spawnSync } from 'node:child_process'
import { newSecret } from '../src/operators/settings/secrets.ts'
import { randomBytes } from 'node:crypto'
import { glob, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Kafka } from 'kafkajs'
import pino from 'pino'
import { createKafka } from '../src/adapters/kafka/patched-client.ts'
import { ensureTopics } from '../src/adapters/kafka/admin/topics.ts'
import { KafkaProducer } from '../src/adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord, type PlainRecord } from '../src/adapters/kafka/producer/plain-record.ts'
import { publishAll } from '../src/adapters/kafka/producer/publish.ts'
import { createCodecs, type Codecs } from '../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../src/adapters/schema-registry/registry.ts'
import { registerSchemas } from '../src/adapters/schema-registry/subjects.ts'
import { createSecrets } from '../src/adapters/secrets.ts'
import { SettingsLog } from '../src/adapters/folded-log/settings-log.ts'
import { loadConfig, type Config } from '../src/config/config.ts'
import type { AnalyticsCall } from '../src/core/call/analytics-call.ts'
import type { SettingsCommand } from '../src/core/settings/commands.ts'
import { topicNames, type TopicNames } from '../src/core/topics.ts'
import { startLocalKafka } from '../src/local/kafka.ts'
import { ensureLocalParts } from '../src/local/parts.ts'
import { startLocalRegistry } from '../src/local/registry.ts'
import { bindsCores, Child } from './child.ts'
import { processMs } from './measure/cpu.ts'
import { sharedSecret } from './calls.ts'

/** A Kafka and a registry for one run of the benchmarks. */
export interface Servers {
  env: Record<string, string>
  brokerPid: number
  /** CPU time of the broker so far, in ms; null where that is not to be had. */
  brokerCpuMs(): Promise<number | null>
  /** What lies in the broker's files, by topic. */
  topicBytes(): Promise<Map<string, number>>
  stop(): Promise<void>
}

/** Records in one request of the producer: kafkajs sorts them by partition in quadratic time. */
const batchSize = 2_000

/** Everything but what is measured runs on the other core. */
export const measuredCore = 0
export const otherCore = 1

export async function startServers(): Promise<Servers> {
  if (bindsCores) spawnSync('taskset', ['-pc', String(otherCore), String(process.pid)])
  const dataDir = await mkdtemp(join(tmpdir(), 'postrider-bench-'))
  const parts = await ensureLocalParts()
  const kafka = await startLocalKafka({ parts, dataDir: join(dataDir, 'kafka'), port: 0 })
  const registry = await startLocalRegistry({ parts, dataDir: join(dataDir, 'registry'), port: 0 })
  return {
    env: { KAFKA_BROKERS: kafka.brokers.join(','), SCHEMA_REGISTRY_URL: registry.url },
    brokerPid: kafka.pid,
    brokerCpuMs: () => processMs(kafka.pid),
    topicBytes: () => segmentBytes(join(dataDir, 'kafka')),
    async stop() {
      await Promise.all([kafka.stop(), registry.stop()])
      await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** A segment is `<topic>-<partition>/<20 digits>.log`. */
async function segmentBytes(folder: string): Promise<Map<string, number>> {
  const bytes = new Map<string, number>()
  for await (const path of glob('**/*.log', { cwd: folder })) {
    const [, topic] = /([^/]+)-\d+\/\d{20}\.log$/.exec(path) ?? []
    if (topic === undefined) continue
    // Kafka may have taken it away meanwhile.
    const size = await stat(join(folder, path)).then(
      (found) => found.size,
      () => 0,
    )
    bytes.set(topic, (bytes.get(topic) ?? 0) + size)
  }
  return bytes
}

/** Topics, schemas and settings of one workload. */
export interface Deployment {
  env: Record<string, string>
  config: Config
  topics: TopicNames
  kafka: Kafka
  codecs: Codecs
  append(topic: string, count: number, nth: (index: number) => PlainRecord, label: string): Promise<void>
  produce(count: number, nth: (index: number) => AnalyticsCall, label: string): Promise<void>
  /** Of a destination that was made here. */
  endpointIds(destinationId: string): string[]
  destination(id: string, sourceId: string, urls: string[]): Promise<void>
  execute(command: SettingsCommand): Promise<unknown>
  close(): Promise<void>
}

export async function deploy(servers: Servers, extra: Record<string, string> = {}): Promise<Deployment> {
  const prefix = `bench${randomBytes(3).toString('hex')}.`
  const env = {
    ...servers.env,
    TOPIC_PREFIX: prefix,
    GROUP_ID: `${prefix}group`,
    SECRETS_KEY: randomBytes(32).toString('hex'),
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    // What is measured is the collector.
    SOURCE_MAX_RATE: '0',
    ...extra,
  }
  const config = loadConfig(env)
  const log = pino({ level: 'warn' }, pino.destination(2))
  const kafka = createKafka(config, log)
  const topics = topicNames(prefix)
  const admin = kafka.admin()
  await admin.connect()
  await ensureTopics(kafka, admin, config)
  await registerSchemas(new Registry(config.registry), config)
  const codecs = createCodecs({ registry: config.registry, topics, log })
  await Promise.all([codecs.calls.ready(), codecs.settings.ready()])
  const settings = new SettingsLog({
    kafka,
    topic: topics.settings,
    codec: codecs.settings,
    log,
  })
  await settings.start()
  const secrets = createSecrets(config.secretsKeys)
  const producer = new KafkaProducer(kafka, log)
  const append: Deployment['append'] = async (topic, count, nth, label) => {
    for (let start = 0; start < count; start += batchSize) {
      const messages = Array.from({ length: Math.min(batchSize, count - start) }, (_, index) =>
        nth(start + index),
      )
      await publishAll(producer, topic, messages.map(encodeRecord), { withinMs: 30_000 })
      if (process.stderr.isTTY)
        process.stderr.write(`\r${label}: produced ${start + messages.length} of ${count}`)
    }
    if (process.stderr.isTTY) process.stderr.write('\r\u001b[K')
  }
  return {
    env,
    config,
    topics,
    kafka,
    codecs,
    append,
    produce: (count, nth, label) =>
      append(
        topics.calls,
        count,
        (index) => {
          const call = nth(index)
          return { key: call.userId!, value: codecs.calls.encode(call) }
        },
        label,
      ),
    execute: (command) => settings.execute(command),
    endpointIds: (id) => settings.state.destinations.get(id)!.urls.map((url) => url.id),
    async destination(id, sourceId, urls) {
      if (!settings.state.sources.has(sourceId)) {
        await settings.execute({
          type: 'create_source',
          id: sourceId,
          name: sourceId,
          writeKey: `key-${sourceId}`,
          enabled: true,
        })
      }
      const secret = newSecret(sharedSecret, secrets)
      await settings.execute({
        type: 'create_destination',
        id,
        name: id,
        sourceIds: [sourceId],
        urls,
        headers: [],
        sharedSecret: secret,
        enabled: true,
      })
    },
    async close() {
      await settings.close()
      producer.close()
      await admin.disconnect()
    },
  }
}

/**
 * A deployment with `count` sources, each with one destination with one URL, each of them an endpoint of its own.
 * `urls` are by source.
 */
export async function deployMany(
  servers: Servers,
  count: number,
  extra: Record<string, string> = {},
): Promise<{ deployment: Deployment; receiver: Child; urls: Record<string, string> }> {
  const deployment = await deploy(servers, extra)
  const receiver = new Child('endpoints.ts', { core: otherCore, args: [String(count)] })
  const { ports } = (await receiver.reported('listening')) as unknown as { ports: number[] }
  const urls: Record<string, string> = {}
  for (const [index, port] of ports.entries()) {
    const url = `http://127.0.0.1:${port}/hook`
    urls[`source-${index}`] = url
    await deployment.destination(`destination-${index}`, `source-${index}`, [url])
  }
  return { deployment, receiver, urls }
}
