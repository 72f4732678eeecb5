import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import kafkajs, { type Admin, type Kafka, type Producer } from 'kafkajs'
import { SettingsLog } from '../../src/adapters/folded-log/settings-log.ts'
import { ensureTopics } from '../../src/adapters/kafka/admin/topics.ts'
import { createKafka } from '../../src/adapters/kafka/patched-client.ts'
import { createCodecs, type Codecs } from '../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../src/adapters/schema-registry/registry.ts'
import { registerSchemas } from '../../src/adapters/schema-registry/subjects.ts'
import { createSecrets, type Secrets } from '../../src/adapters/secrets.ts'
import { loadConfig, type Config } from '../../src/config/config.ts'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import type { SettingsEvent } from '../../src/core/settings/events.ts'
import { topicNames, type TopicNames } from '../../src/core/topics.ts'
import { ensureLocalParts, type LocalParts } from '../../src/local/parts.ts'
import { startLocalRegistry, type LocalRegistry } from '../../src/local/registry.ts'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { silentLog } from '../support/silent-log.ts'
import { ClusterState } from './watch/cluster-state.ts'
import { Cluster } from './watch/cluster.ts'

/** All delays that any forwarder of the run may have among its tiers: `setup` makes a topic for each. */
export const tierSets = ['1s,2s,5s', '1s,3s', '2s,5s'] as const
const allTiers = '1s,2s,3s,5s'
export const webhookTimeoutMs = 2_000
export const sessionTimeoutMs = 6_000

export interface RigOptions {
  /** One, or three. */
  brokers: 1 | 3
  /** With disks that can be made full: it takes a mount. */
  withDisk: boolean
  /** How long a delivery is tried. */
  windowMs: number
}

/** Brokers, a registry and a network between them and Postrider: all of it can be broken. */
export class Rig {
  readonly folder: string
  readonly cluster: Cluster
  readonly state: ClusterState
  readonly windowMs: number
  readonly config: Config
  readonly topics: TopicNames
  /** Goes to the brokers directly, past the proxies. */
  readonly kafka: Kafka
  readonly admin: Admin
  readonly codecs: Codecs
  readonly secrets: Secrets
  readonly settings: SettingsLog
  /** What the runner's own commands came to, once each was acknowledged. */
  readonly settingsEvents: SettingsEvent[] = []
  /** When `toggled` was disabled, epoch ms: from when that was asked for until it was enabled again. */
  readonly disablings: { from: number; to: number }[] = []
  readonly #parts: LocalParts
  readonly #env: Record<string, string>
  #registry: LocalRegistry

  private constructor(given: {
    folder: string
    parts: LocalParts
    cluster: Cluster
    registry: LocalRegistry
    windowMs: number
  }) {
    this.folder = given.folder
    this.cluster = given.cluster
    this.windowMs = given.windowMs
    this.#parts = given.parts
    this.#registry = given.registry
    this.#env = {
      KAFKA_BROKERS: given.cluster.brokers.join(),
      SCHEMA_REGISTRY_URL: given.registry.url,
      GROUP_ID: 'faults',
      SECRETS_KEY: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
      RETRY_TIERS: allTiers,
      RETRY_WINDOW: `${given.windowMs}ms`,
      WEBHOOK_TIMEOUT: `${webhookTimeoutMs}ms`,
      SESSION_TIMEOUT: `${sessionTimeoutMs}ms`,
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      PARTITIONS_CALLS: '6',
      PARTITIONS_RETRY: '3',
      PARTITIONS_DEAD_LETTERS: '2',
      PARTITIONS_DELIVERIES: '2',
    }
    this.config = loadConfig(this.#env)
    this.topics = topicNames('')
    const silent = silentLog
    this.kafka = createKafka(this.config, silent)
    this.admin = this.kafka.admin({ retry: { retries: 3 } })
    this.state = new ClusterState(this.cluster, this.admin)
    this.codecs = createCodecs({ registry: this.config.registry, topics: this.topics, log: silent })
    this.secrets = createSecrets(this.config.secretsKeys)
    this.settings = new SettingsLog({
      kafka: this.kafka,
      topic: this.topics.settings,
      codec: this.codecs.settings,
      log: silent,
    })
  }

  static async start(folder: string, { brokers, withDisk, windowMs }: RigOptions): Promise<Rig> {
    const parts = await ensureLocalParts()
    const begun: (() => Promise<void>)[] = []
    try {
      const starting = [
        Cluster.start(folder, { parts, brokers, withDisk }),
        startLocalRegistry({ parts, dataDir: join(folder, 'registry') }),
      ] as const
      const [started, registered] = await Promise.allSettled(starting)
      if (started.status === 'fulfilled') begun.push(() => started.value.close())
      if (registered.status === 'fulfilled') begun.push(() => registered.value.kill())
      const [cluster, registry] = await Promise.all(starting)
      const rig = new Rig({ folder, parts, cluster, registry, windowMs })
      await rig.#setUp()
      return rig
    } catch (error) {
      await Promise.all(begun.map((end) => end()))
      throw error
    }
  }

  async #setUp(): Promise<void> {
    await this.admin.connect()
    await ensureTopics(this.kafka, this.admin, this.config)
    await registerSchemas(new Registry(this.config.registry), this.config)
    const { calls, deadLetters, retries, settings } = this.codecs
    await Promise.all([calls.ready(), deadLetters.ready(), retries('1s').ready(), settings.ready()])
    await this.settings.start()
  }

  /** Changes the settings; rejects as `SettingsLog.perform`. */
  async execute(command: SettingsCommand): Promise<void> {
    const { event } = await this.settings.perform(command)
    if (event) this.settingsEvents.push(event)
  }

  /** The environment of a part of Postrider: it reaches the brokers through the proxies only. */
  partEnv(): Record<string, string> {
    return { ...this.#env, KAFKA_BROKERS: this.cluster.proxied.join() }
  }

  /** The environment of a command that must see everything. */
  commandEnv(): Record<string, string> {
    return { ...this.#env, ...bareEnv }
  }

  /** One that tries nothing again: kafkajs's own retries lose records when a leader moves (facts of 2.2.4). */
  producer(): Producer {
    return this.kafka.producer({
      createPartitioner: kafkajs.Partitioners.DefaultPartitioner,
      retry: { retries: 0 },
    })
  }

  get registry(): LocalRegistry {
    return this.#registry
  }

  async startRegistry(): Promise<void> {
    this.#registry = await startLocalRegistry({
      parts: this.#parts,
      dataDir: join(this.folder, 'registry'),
      port: this.#registry.port,
    })
  }

  async close(): Promise<void> {
    await this.settings.close().catch(() => {})
    await this.admin.disconnect().catch(() => {})
    await Promise.all([this.cluster.close(), this.#registry.kill()])
    await rm(join(this.folder, 'kafka'), { recursive: true, force: true, maxRetries: 5 })
    await rm(join(this.folder, 'registry'), { recursive: true, force: true, maxRetries: 5 })
  }
}
