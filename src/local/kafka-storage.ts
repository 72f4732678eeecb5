import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { PostriderError } from '../errors.ts'
import { runJavaTool } from './java-server.ts'
import type { LocalParts } from './parts.ts'
import { claimStateFolder } from './state-folder.ts'

/** A cluster of one node keeps its records in `log`; each of three nodes has a folder of its own, `node-1` and on. */
const nodeFolderName = (id: number): string => `node-${id}`

/** How many nodes a state folder was begun with; null when nothing is kept there. */
export function keptNodes(dataDir: string): 1 | 3 | null {
  if (existsSync(join(dataDir, nodeFolderName(1)))) return 3
  return existsSync(join(dataDir, 'log')) ? 1 : null
}

const nodeCount = (count: number): string => (count === 1 ? 'one node' : 'three nodes')

/**
 * Creates the folders of the nodes and waits for processes that a killed run left behind. Throws a `local` error
 * when another run holds them, and when the folder was begun with another number of nodes.
 * @returns the folder of each node, in the order of their ids
 */
export async function prepareNodeFolders(options: {
  dataDir: string
  nodeIds: readonly number[]
}): Promise<string[]> {
  const { nodeIds } = options
  const dataDir = resolve(options.dataDir)
  const kept = keptNodes(dataDir)
  if (kept !== null && kept !== nodeIds.length) {
    throw new PostriderError(
      'local',
      `${dataDir} holds the records of a Kafka of ${nodeCount(kept)}: start ${nodeCount(kept)} there, or ` +
        `choose another folder for ${nodeCount(nodeIds.length)}`,
    )
  }
  if (nodeIds.length === 1) return [await claimStateFolder(dataDir, 'Kafka')]
  return Promise.all(
    nodeIds.map((id) => claimStateFolder(join(dataDir, nodeFolderName(id)), `Kafka node ${id}`)),
  )
}

/**
 * Gives new folders their cluster id. The id is noted last: folders without the note were never started on
 * (their formatting was cut off), so what is in them can be thrown away. `server.properties` must be there.
 */
export async function formatOnce(options: {
  parts: LocalParts
  dataDir: string
  folders: readonly string[]
  /** Further arguments of the storage tool's `format`. */
  formatArgs: readonly string[]
}): Promise<void> {
  const { parts, folders } = options
  const note = join(options.dataDir, 'cluster-id')
  if (await readFile(note).catch(() => null)) return
  const clusterId = newClusterId()
  const formatting = folders.map(async (folder) => {
    await rm(join(folder, 'log'), { recursive: true, force: true })
    await runJavaTool({
      what: "formatting Kafka's storage",
      java: parts.java,
      args: [
        ...parts.kafkaFlags,
        ...['-cp', parts.kafkaClassPath, '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'],
        ...['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', 'server.properties'],
        ...options.formatArgs,
      ],
      dataDir: folder,
      logName: 'format.log',
    })
  })
  // Where one fails, the others are waited for: nothing of them may write into a folder that the caller removes.
  await Promise.allSettled(formatting)
  await Promise.all(formatting)
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

export type KafkaProperties = Record<string, string | number | boolean>

/** Where a node listens on 127.0.0.1: for clients, and for the controllers of the other nodes. */
export interface KafkaNodeAddress {
  /** `node.id`: 1, 2 or 3. */
  id: number
  port: number
  controllerPort: number
}

/**
 * The server properties of one node of a cluster whose nodes are `all`. Paths are relative to the node's folder,
 * so that it can be moved and its name needs no escaping.
 */
export function serverProperties(node: KafkaNodeAddress, all: readonly KafkaNodeAddress[]): KafkaProperties {
  const voters = all.map(({ id, controllerPort }) => `${id}@127.0.0.1:${controllerPort}`)
  return {
    'process.roles': 'broker,controller',
    'node.id': node.id,
    'controller.quorum.voters': voters.join(),
    listeners: `PLAINTEXT://127.0.0.1:${node.port},CONTROLLER://127.0.0.1:${node.controllerPort}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${node.port}`,
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT',
    'log.dirs': 'log',
    ...(all.length === 1 ? oneCopy : threeCopies),
    // Few users: small internal topics make for a quick start.
    'offsets.topic.num.partitions': 4,
    'transaction.state.log.num.partitions': 4,
    'group.initial.rebalance.delay.ms': 0,
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

/** One node: nothing can be kept twice. */
const oneCopy: KafkaProperties = {
  'offsets.topic.replication.factor': 1,
  'transaction.state.log.replication.factor': 1,
  'transaction.state.log.min.isr': 1,
  'share.coordinator.state.topic.replication.factor': 1,
  'share.coordinator.state.topic.min.isr': 1,
  // After a kill the next start has to wait this long (9 s unless set), until the broker of before counts as gone.
  'broker.session.timeout.ms': 3000,
  'broker.heartbeat.interval.ms': 500,
}

/** As production clusters are set: three copies, and what is acknowledged lies in at least two of them. */
const threeCopies: KafkaProperties = {
  'default.replication.factor': 3,
  'min.insync.replicas': 2,
  'offsets.topic.replication.factor': 3,
  'transaction.state.log.replication.factor': 3,
  'transaction.state.log.min.isr': 2,
  'share.coordinator.state.topic.replication.factor': 3,
  'share.coordinator.state.topic.min.isr': 2,
  'unclean.leader.election.enable': false,
  // Leaders of a node that is killed or frozen move after this time (9 s unless set).
  'broker.session.timeout.ms': 6000,
  'broker.heartbeat.interval.ms': 500,
  // A node that is back leads its partitions again this soon (5 min unless set).
  'leader.imbalance.check.interval.seconds': 5,
}

export function propertiesText(properties: KafkaProperties): string {
  return Object.entries(properties)
    .map(([key, value]) => `${key}=${String(value).replaceAll('\\', '\\\\')}\n`)
    .join('')
}
