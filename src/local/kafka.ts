import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Kafka, logLevel } from 'kafkajs'
import '../adapters/kafka/client.ts' // Mends kafkajs's timer, which would print a warning.
import { PostriderError } from '../errors.ts'
import { prepareFolder, runJavaTool, startJavaServer, type LocalServer } from './java-server.ts'
import type { LocalParts } from './parts.ts'
import { freePort, isPortFree } from './ports.ts'

export interface LocalKafka extends LocalServer {
  /** For kafkajs and KAFKA_BROKERS: one `host:port`. */
  brokers: string[]
}

export interface LocalKafkaOptions {
  parts: LocalParts
  /** All state lives here (records, cluster id, log file), and is used again by the next start. */
  dataDir: string
  /** 0 (the default) picks a free one; start again with the `port` of before to be the same broker to clients. */
  port?: number
  /** What changes the port, for the line that says that it is taken: `--kafka-port`. */
  portSetting?: string
  /** Server properties on top of ours. */
  properties?: Record<string, string | number | boolean>
  /** Appended to `StorageTool format`: `--add-scram …`, for users that exist from the start. */
  formatArgs?: string[]
  /** 512 MB unless told. */
  heapMb?: number
  signal?: AbortSignal
}

/**
 * Starts a real Apache Kafka of one node (KRaft: broker and controller in one process) on 127.0.0.1, and
 * resolves once topics and consumer groups can be used. Throws a `local` error when the port is taken, the
 * folder is in use or the broker does not start.
 */
export async function startLocalKafka(options: LocalKafkaOptions): Promise<LocalKafka> {
  const dataDir = await prepareFolder(options.dataDir, 'Kafka')
  for (let tries = 1; ; tries++) {
    try {
      return await startOnce(options, dataDir)
    } catch (error) {
      // A free port can be lost to somebody else before the broker takes it.
      const lost =
        error instanceof PostriderError && /Address already in use|BindException/.test(error.message)
      if (!lost || tries === 3) throw error
    }
  }
}

async function startOnce(options: LocalKafkaOptions, dataDir: string): Promise<LocalKafka> {
  const { parts, signal } = options
  const port = options.port || (await freePort())
  if (!(await isPortFree(port))) {
    throw new PostriderError(
      'local',
      `port ${port} is taken: if a Kafka listens there, set KAFKA_BROKERS=127.0.0.1:${port} to use it; ` +
        `otherwise stop what listens there${options.portSetting ? `, or give another port with ${options.portSetting}` : ''}`,
    )
  }
  const controllerPort = await freePort([port])
  const properties = { ...serverProperties(port, controllerPort), ...options.properties }
  await writeFile(join(dataDir, 'server.properties'), propertiesText(properties))
  await formatOnce(parts, dataDir, options.formatArgs ?? [])
  const brokers = [`127.0.0.1:${port}`]
  const server = await startJavaServer({
    name: 'Kafka',
    java: parts.java,
    args: [
      `-Xmx${options.heapMb ?? 512}m`,
      '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn',
      '-Dorg.slf4j.simpleLogger.showDateTime=true',
      '-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss,SSS',
      ...['-cp', parts.kafkaClassPath, 'kafka.Kafka', 'server.properties'],
    ],
    env: {},
    dataDir,
    port,
    logName: 'kafka.log',
    isReady: () => isReady(brokers),
    signal,
  })
  return { ...server, brokers }
}

/** Paths are relative to the state folder, so that it can be moved and its name needs no escaping. */
function serverProperties(port: number, controllerPort: number): Record<string, string | number | boolean> {
  return {
    'process.roles': 'broker,controller',
    'node.id': 1,
    'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
    listeners: `PLAINTEXT://127.0.0.1:${port},CONTROLLER://127.0.0.1:${controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${port}`,
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': 'log',
    // One node: nothing can be kept twice.
    'offsets.topic.replication.factor': 1,
    'transaction.state.log.replication.factor': 1,
    'transaction.state.log.min.isr': 1,
    'share.coordinator.state.topic.replication.factor': 1,
    'share.coordinator.state.topic.min.isr': 1,
    // Few users: small internal topics make for a quick start.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.num.partitions': 4,
    'group.initial.rebalance.delay.ms': 0,
    // After a kill the next start has to wait this long (9 s unless set), until the broker of before counts as gone.
    'broker.session.timeout.ms': 3000,
    'broker.heartbeat.interval.ms': 500,
    // A misspelt topic is an error, not a new topic.
    'auto.create.topics.enable': false,
    // A project left alone for weeks goes on where it stopped (7 days is the default).
    'offsets.retention.minutes': 30 * 24 * 60,
    // Deleted topics leave the disk soon, and thousands of small partitions take little of it.
    'log.segment.delete.delay.ms': 1000,
    'log.index.size.max.bytes': 1024 * 1024,
    'log.cleaner.dedupe.buffer.size': 16 * 1024 * 1024,
  }
}

function propertiesText(properties: Record<string, string | number | boolean>): string {
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${String(value).replaceAll('\\', '\\\\')}\n`)
    .join('')
}

/**
 * Gives a new state folder its cluster id. The id is noted last: a folder without the note was never started on
 * (its formatting was cut off), so what is in it can be thrown away.
 */
async function formatOnce(parts: LocalParts, dataDir: string, formatArgs: readonly string[]): Promise<void> {
  const note = join(dataDir, 'cluster-id')
  if (await readFile(note).catch(() => null)) return
  await rm(join(dataDir, 'log'), { recursive: true, force: true })
  const clusterId = newClusterId()
  await runJavaTool({
    what: "formatting Kafka's storage",
    java: parts.java,
    args: [
      ...['-cp', parts.kafkaClassPath, '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'],
      ...['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', 'server.properties', ...formatArgs],
    ],
    dataDir,
    logName: 'format.log',
  })
  await writeFile(`${note}.partial`, clusterId)
  await rename(`${note}.partial`, note)
}

/** 16 random bytes as Kafka writes them; never with a `-` in front, which would read as a flag. */
function newClusterId(): string {
  for (;;) {
    const id = randomBytes(16).toString('base64url')
    if (!id.startsWith('-')) return id
  }
}

/**
 * A broker listens before its group coordinator answers, and kafkajs would complain in between: ready means
 * that both metadata and a group's offsets are to be had.
 */
async function isReady(brokers: string[]): Promise<boolean> {
  const kafka = new Kafka({
    clientId: 'postrider-local',
    brokers,
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: 5000,
    retry: { retries: 0 },
  })
  const admin = kafka.admin()
  try {
    await admin.connect()
    await admin.listTopics()
    await admin.fetchOffsets({ groupId: 'postrider-local-readiness' })
    return true
  } catch {
    return false
  } finally {
    await admin.disconnect().catch(() => {})
  }
}
