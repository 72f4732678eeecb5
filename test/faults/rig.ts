import { appendFile, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import kafkajs from 'kafkajs'
import type { Admin, Kafka } from 'kafkajs'
import pino from 'pino'
import { createKafka } from '../../src/adapters/kafka/patched-client.ts'
import { ensureTopics } from '../../src/adapters/kafka/topics.ts'
import { createCodecs, type Codecs } from '../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../src/adapters/schema-registry/registry.ts'
import { registerSchemas } from '../../src/adapters/schema-registry/subjects.ts'
import { createSecrets, type Secrets } from '../../src/adapters/secrets.ts'
import { SettingsLog } from '../../src/adapters/settings-log.ts'
import { loadConfig, type Config } from '../../src/config.ts'
import { topicNames, type TopicNames } from '../../src/core/topics.ts'
import { startLocalKafka, type LocalKafka } from '../../src/local/kafka.ts'
import { ensureLocalParts, type LocalParts } from '../../src/local/parts.ts'
import { freePort } from '../../src/local/ports.ts'
import { startLocalRegistry, type LocalRegistry } from '../../src/local/registry.ts'
import { mountDisk, type Disk } from './disk.ts'
import { startTcpProxy, type TcpProxy } from './tcp-proxy.ts'

/** All delays that any forwarder of the run may have among its tiers: `setup` makes a topic for each. */
export const tierSets = ['1s,2s,5s', '1s,3s', '2s,5s'] as const
const allTiers = '1s,2s,3s,5s'
export const windowMs = 30_000
export const webhookTimeoutMs = 2_000
export const sessionTimeoutMs = 6_000

/** A broker, a registry and a network between them and the forwarders: all of it can be broken. */
export class Rig {
  readonly folder: string
  readonly proxy: TcpProxy
  /** Null where none can be mounted; `diskProblem` says why. */
  readonly disk: Disk | null
  readonly diskProblem: string | null
  readonly config: Config
  readonly topics: TopicNames
  /** Goes to the broker directly, past the proxy. */
  readonly kafka: Kafka
  readonly admin: Admin
  readonly codecs: Codecs
  readonly secrets: Secrets
  readonly settings: SettingsLog
  readonly #parts: LocalParts
  readonly #env: Record<string, string>
  readonly #ports: { direct: number; proxied: number; controller: number }
  #broker: LocalKafka
  #registry: LocalRegistry

  private constructor(given: {
    folder: string
    parts: LocalParts
    ports: { direct: number; proxied: number; controller: number }
    proxy: TcpProxy
    disk: Disk | null
    diskProblem: string | null
    broker: LocalKafka
    registry: LocalRegistry
  }) {
    this.folder = given.folder
    this.proxy = given.proxy
    this.disk = given.disk
    this.diskProblem = given.diskProblem
    this.#parts = given.parts
    this.#ports = given.ports
    this.#broker = given.broker
    this.#registry = given.registry
    this.#env = {
      KAFKA_BROKERS: given.broker.brokers.join(),
      SCHEMA_REGISTRY_URL: given.registry.url,
      GROUP_ID: 'faults',
      SECRETS_KEY: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
      RETRY_TIERS: allTiers,
      RETRY_WINDOW: `${windowMs}ms`,
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
    const silent = pino({ level: 'silent' })
    this.kafka = createKafka(this.config, silent)
    this.admin = this.kafka.admin({ retry: { retries: 3 } })
    this.codecs = createCodecs({ registry: this.config.registry, topics: this.topics, log: silent })
    this.secrets = createSecrets(this.config.secretsKeys)
    this.settings = new SettingsLog({
      kafka: this.kafka,
      topic: this.topics.settings,
      groupId: 'runner',
      codec: this.codecs.settings,
      log: silent,
    })
  }

  /** With a disk that can be made full only where one is asked for: it takes a mount. */
  static async start(folder: string, { withDisk }: { withDisk: boolean }): Promise<Rig> {
    const parts = await ensureLocalParts()
    const brokerFolder = join(folder, 'kafka')
    const mounted = withDisk ? await mountDisk(brokerFolder) : { impossible: 'none was asked for' }
    const disk = 'impossible' in mounted ? null : mounted
    const direct = await freePort()
    const proxied = await freePort([direct])
    const ports = { direct, proxied, controller: await freePort([direct, proxied]) }
    const proxy = await startTcpProxy(proxied)
    const begun: { kill(): Promise<void> }[] = []
    try {
      const starting = [
        startBroker(parts, brokerFolder, ports, proxy.port),
        startLocalRegistry({ parts, dataDir: join(folder, 'registry') }),
      ] as const
      for (const result of await Promise.allSettled(starting))
        if (result.status === 'fulfilled') begun.push(result.value)
      const [broker, registry] = await Promise.all(starting)
      const rig = new Rig({
        ...{ folder, parts, ports, proxy, disk, broker, registry },
        diskProblem: 'impossible' in mounted ? mounted.impossible : null,
      })
      await rig.#setUp()
      return rig
    } catch (error) {
      await Promise.all(begun.map((server) => server.kill()))
      await proxy.close()
      await disk?.unmount()
      throw error
    }
  }

  async #setUp(): Promise<void> {
    await this.admin.connect()
    await ensureTopics(this.admin, this.config)
    await registerSchemas(new Registry(this.config.registry), this.config)
    const { calls, deadLetters, retries, settings } = this.codecs
    await Promise.all([calls.ready(), deadLetters.ready(), retries('1s').ready(), settings.ready()])
    await this.settings.start()
  }

  /** The environment of a forwarder: it reaches the broker through the proxy only. */
  forwarderEnv(): Record<string, string> {
    return { ...this.#env, KAFKA_BROKERS: `127.0.0.1:${this.proxy.port}` }
  }

  /** The environment of a command that must see everything. */
  commandEnv(): Record<string, string> {
    return { ...this.#env, PATH: process.env.PATH ?? '' }
  }

  producer() {
    return this.kafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
  }

  get broker(): LocalKafka {
    return this.#broker
  }

  async startBroker(): Promise<void> {
    await this.#keepLog()
    this.#broker = await startBroker(this.#parts, join(this.folder, 'kafka'), this.#ports, this.proxy.port)
  }

  /** Each start begins the broker's log anew, and its folder is deleted: what it said is wanted where a run failed. */
  async #keepLog(): Promise<void> {
    const text = await readFile(join(this.folder, 'kafka', 'kafka.log')).catch(() => '')
    await appendFile(join(this.folder, 'kafka.log'), text)
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
    await Promise.all([this.#broker.kill(), this.#registry.kill(), this.proxy.close()])
    await this.#keepLog()
    await this.disk?.unmount()
    await rm(join(this.folder, 'kafka'), { recursive: true, force: true, maxRetries: 5 })
    await rm(join(this.folder, 'registry'), { recursive: true, force: true, maxRetries: 5 })
  }
}

/** Two ways in: one that the runner uses, and one whose address, told to every client, is the proxy's. */
async function startBroker(
  parts: LocalParts,
  dataDir: string,
  ports: { direct: number; proxied: number; controller: number },
  proxyPort: number,
): Promise<LocalKafka> {
  await mkdir(dataDir, { recursive: true })
  return startLocalKafka({
    parts,
    dataDir,
    port: ports.direct,
    properties: {
      listeners: `PLAINTEXT://127.0.0.1:${ports.direct},PROXIED://127.0.0.1:${ports.proxied},CONTROLLER://127.0.0.1:${ports.controller}`,
      'advertised.listeners': `PLAINTEXT://127.0.0.1:${ports.direct},PROXIED://127.0.0.1:${proxyPort}`,
      'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT',
      'inter.broker.listener.name': 'PLAINTEXT',
      'controller.quorum.voters': `1@127.0.0.1:${ports.controller}`,
      'group.min.session.timeout.ms': 1_000,
    },
  })
}
