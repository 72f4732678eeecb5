import { writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { PostriderError } from '../errors.ts'
import type { ChildExit } from './child-process.ts'
import type { LocalServer } from './java-server.ts'
import { LocalKafkaNode, answersForGroups, knowsBrokers } from './kafka-node.ts'
import {
  propertiesText,
  serverProperties,
  type KafkaNodeAddress,
  type KafkaProperties,
  formatOnce,
  prepareNodeFolders,
} from './kafka-storage.ts'
import type { LocalParts } from './parts.ts'
import { freePort, isPortFree, startOnFreePorts } from './ports.ts'

/**
 * A Kafka of one or three nodes. `port`, `pid` and `logFile` are those of the first node. `stop` and `kill` end all
 * nodes, frozen ones too, and for good; `exited` resolves when no node runs any more.
 */
export interface LocalKafka extends LocalServer {
  /** For kafkajs and KAFKA_BROKERS: a `host:port` for each node. */
  brokers: string[]
  /** In the order of their ids, which are 1, 2, 3. */
  nodes: readonly LocalKafkaNode[]
}

export interface LocalKafkaOptions {
  parts: LocalParts
  /** All state lives here (records, cluster id, log files), and is used again by the next start. */
  dataDir: string
  /** 1 (the default) or 3. */
  nodes?: 1 | 3
  /** Of the first node. 0 (the default) picks a free one; start again with the port of before to be the same broker to clients. */
  port?: number
  /** Of each node, in place of `port`; 0 picks a free one. */
  ports?: readonly number[]
  /** What changes the port, for the line that says that it is taken: `--kafka-port`. */
  portSetting?: string
  /** Server properties on top of ours. The listener at `port` must stay plain and open to all: readiness is asked there. */
  properties?: KafkaProperties
  /** Further properties of each node, on top of `properties`: advertised listeners, for instance. */
  nodeProperties?: (node: KafkaNodeAddress) => KafkaProperties
  /** Further arguments of the storage tool's `format`, such as `--add-scram`. They count in a new folder only. */
  formatArgs?: readonly string[]
  /** Of each node. 512 MB for one node, 384 MB for three, unless set. */
  heapMb?: number
  signal?: AbortSignal
  /** Called when a node ends by itself, and not by `stop` or `kill`. */
  onNodeEnd?: (node: LocalKafkaNode, exit: ChildExit) => void
}

/**
 * Starts a real Apache Kafka of one or three nodes (KRaft: broker and controller in one process each) on 127.0.0.1,
 * and resolves once every node takes requests and topics and consumer groups can be used. Throws a `local` error when
 * a port is taken, the folder is in use or holds a Kafka of another size, or a node does not start.
 */
export async function startLocalKafka(options: LocalKafkaOptions): Promise<LocalKafka> {
  const nodeIds = options.nodes === 3 ? [1, 2, 3] : [1]
  const folders = await prepareNodeFolders({ dataDir: options.dataDir, nodeIds })
  return startOnFreePorts(() => startOnce(options, folders))
}

async function startOnce(options: LocalKafkaOptions, folders: readonly string[]): Promise<LocalKafka> {
  const { parts, properties, nodeProperties } = options
  const dataDir = resolve(options.dataDir)
  const addresses = await chooseAddresses(options, folders.length)
  for (const [at, address] of addresses.entries()) {
    const all = { ...serverProperties(address, addresses), ...properties, ...nodeProperties?.(address) }
    await writeFile(join(folders[at]!, 'server.properties'), propertiesText(all))
  }
  await formatOnce({ parts, dataDir, folders, formatArgs: options.formatArgs ?? [] })
  const closing = new AbortController()
  const exited = Promise.withResolvers<ChildExit>()
  const nodes = addresses.map((address, at) => {
    const node: LocalKafkaNode = new LocalKafkaNode({
      parts,
      name: folders.length === 1 ? 'Kafka' : `Kafka node ${address.id}`,
      address,
      dataDir: folders[at]!,
      heapMb: options.heapMb ?? (folders.length === 1 ? 512 : 384),
      closing: closing.signal,
      onExit(exit, isAsked) {
        if (!isAsked) options.onNodeEnd?.(node, exit)
        if (!nodes.some((other) => other.isRunning())) exited.resolve(exit)
      },
    })
    return node
  })
  await beginAll(nodes, closing, options.signal)
  const [first] = nodes as [LocalKafkaNode]
  const end = async (endNode: (node: LocalKafkaNode) => Promise<void>) => {
    closing.abort()
    await Promise.all(nodes.map(endNode))
  }
  return {
    name: 'Kafka',
    dataDir,
    port: first.port,
    logFile: first.logFile,
    get pid() {
      return first.pid
    },
    brokers: nodes.map(({ broker }) => broker),
    nodes,
    exited: exited.promise,
    isRunning: () => nodes.some((node) => node.isRunning()),
    stop: (deadlineMs) => end((node) => node.stop(deadlineMs)),
    kill: () => end((node) => node.kill()),
  }
}

/** Starts all nodes side by side, for they become ready only together; when one fails, none is left running. */
async function beginAll(
  nodes: readonly LocalKafkaNode[],
  closing: AbortController,
  signal: AbortSignal | undefined,
): Promise<void> {
  const ids = nodes.map(({ id }) => id)
  const brokers = nodes.map(({ broker }) => broker)
  const failures: unknown[] = []
  await Promise.all(
    nodes.map(async (node) => {
      const isReady = async () => (await knowsBrokers(node.port, ids)) && (await answersForGroups(brokers))
      try {
        await node.startFirst(isReady, signal)
      } catch (error) {
        failures.push(error)
        closing.abort(error)
      }
    }),
  )
  if (failures.length === 0) return
  await Promise.all(nodes.map((node) => node.kill()))
  throw failures[0]
}

async function chooseAddresses(options: LocalKafkaOptions, count: number): Promise<KafkaNodeAddress[]> {
  const taken: number[] = []
  const wanted = options.ports ?? [options.port ?? 0]
  for (const port of wanted) if (port !== 0) await mustBeFree(port, options.portSetting)
  const choose = async (port = 0) => {
    const chosen = port || (await freePort([...wanted, ...taken]))
    taken.push(chosen)
    return chosen
  }
  const addresses: KafkaNodeAddress[] = []
  for (let id = 1; id <= count; id++)
    addresses.push({ id, port: await choose(wanted[id - 1]), controllerPort: await choose() })
  return addresses
}

async function mustBeFree(port: number, portSetting: string | undefined): Promise<void> {
  if (await isPortFree(port)) return
  throw new PostriderError(
    'local',
    `port ${port} is taken: if a Kafka listens there, set KAFKA_BROKERS=127.0.0.1:${port} to use it; ` +
      `otherwise stop what listens there${portSetting ? `, or give another port with ${portSetting}` : ''}`,
  )
}
