import { join, relative } from 'node:path'
import { ensureQuickParts } from '../../local/class-archives.ts'
import { keptNodes } from '../../local/kafka-storage.ts'
import { startLocalKafka, type LocalKafka } from '../../local/kafka.ts'
import { startLocalRegistry, type LocalRegistry } from '../../local/registry.ts'
import { io } from '../io.ts'
import { usageError } from '../flags.ts'
import type { Screen } from './dev.ts'

/**
 * Starts Kafka and the registry with what they kept. Throws a `local` error, with neither left running, when Java
 * or Maven is missing, a port is taken, or another `dev` runs in the folder.
 */
export async function startServers(options: {
  folder: string
  ports: LocalServerPorts
  screen: Screen
  signal: AbortSignal
}): Promise<{ kafka: LocalKafka; registry: LocalRegistry }> {
  const { folder, ports, screen } = options
  let isDownloading = false
  const parts = await ensureQuickParts({
    onProgress: (text) => {
      if (!isDownloading && text.startsWith('getting')) {
        screen.ready('download', 'Kafka and a registry by Maven, 160 MB, once for all checkouts')
        isDownloading = true
      }
      screen.progress('', text)
    },
    signal: options.signal,
  })
  const failed = new AbortController()
  const signal = AbortSignal.any([options.signal, failed.signal])
  screen.progress('Kafka', 'starting')
  const starting = [
    startLocalKafka({
      parts,
      dataDir: kafkaFolder(folder),
      nodes: ports.kafka.length === 3 ? 3 : 1,
      ports: ports.kafka,
      portSetting: '--kafka-port (DEV_KAFKA_PORT)',
      onNodeEnd: ({ broker, logFile }, { signal, code }) => {
        // A single broker's end is the end of the run, which says so itself.
        if (ports.kafka.length === 1) return
        const how = signal ?? `code ${code}`
        screen.say(
          `  note: broker ${broker} ended by itself (${how}; ${logFile}); the next start has it again`,
        )
      },
      signal,
    }),
    startLocalRegistry({
      parts,
      dataDir: join(folder, 'registry'),
      port: ports.registry,
      portSetting: '--registry-port (DEV_REGISTRY_PORT)',
      signal,
    }),
  ] as const
  for (const start of starting) start.catch(() => failed.abort())
  try {
    const [kafka, registry] = await Promise.all(starting)
    screen.ready('Kafka', kafka.brokers.join())
    screen.ready('registry', registry.url)
    return { kafka, registry }
  } catch (error) {
    await Promise.all(starting.map((start) => start.then((server) => server.kill()).catch(() => {})))
    throw error
  }
}

export interface LocalServerFlags {
  brokers?: string
  kafkaPort: string
  registryPort: string
  kafkaBrokers?: string
  schemaRegistryUrl?: string
}

/** Where the local servers listen: each broker, and the registry. */
export interface LocalServerPorts {
  kafka: number[]
  registry: number
}

/** Where `dev` keeps what its Kafka holds. */
export const kafkaFolder = (stateFolder: string): string => join(stateFolder, 'kafka')

/**
 * Null when the brokers are the user's own. Throws `usage` when only the registry is, for wrong ports, and for another
 * number of brokers than the state folder holds.
 */
export function localServers(flags: LocalServerFlags, stateFolder: string): LocalServerPorts | null {
  const brokers = flags.kafkaBrokers || io().env.KAFKA_BROKERS?.trim()
  const registry = flags.schemaRegistryUrl || io().env.SCHEMA_REGISTRY_URL?.trim()
  if (brokers && flags.brokers !== undefined)
    throw usageError(
      '--brokers (DEV_BROKERS) is for a local Kafka, and KAFKA_BROKERS names yours: leave one of them out',
    )
  if (brokers) return null
  if (registry)
    throw usageError(
      'SCHEMA_REGISTRY_URL is set and KAFKA_BROKERS is not: set both to use your own, or neither for local ones',
    )
  const first = portOf('--kafka-port', flags.kafkaPort)
  const count = brokerCount(flags.brokers, stateFolder)
  if (first + count - 1 > 65_535)
    throw usageError(`--kafka-port is ${first}, and three brokers take the next two ports as well`)
  const ports = {
    kafka: Array.from({ length: count }, (_, at) => first + at),
    registry: portOf('--registry-port', flags.registryPort),
  }
  if (ports.kafka.includes(ports.registry))
    throw usageError(
      count === 1
        ? `--kafka-port and --registry-port are both ${ports.registry}`
        : `--registry-port is ${ports.registry}, and the brokers take ${ports.kafka.join(', ')}`,
    )
  return ports
}

function brokerCount(asked: string | undefined, stateFolder: string): 1 | 3 {
  if (asked !== undefined && asked !== '1' && asked !== '3')
    throw usageError(`--brokers (DEV_BROKERS) is ${JSON.stringify(asked)}; it takes 1 or 3`)
  const kept = keptNodes(kafkaFolder(stateFolder))
  const count = asked === undefined ? (kept ?? 1) : asked === '3' ? 3 : 1
  if (kept === null || kept === count) return count
  const folder = relative('', stateFolder)
  throw usageError(
    `--brokers (DEV_BROKERS) is ${count}, and ${folder}/ holds what ${kept === 1 ? 'one broker keeps' : 'three brokers keep'}: ` +
      `go on with that by --brokers ${kept}, or move ${folder}/ away to begin again with ${count}`,
  )
}

export function portOf(flag: string, text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port
  const variable = `DEV_${flag.slice(2).replace('-', '_').toUpperCase()}`
  throw usageError(`${flag} (${variable}) is ${JSON.stringify(text)}; it takes a port from 1 to 65535`)
}
