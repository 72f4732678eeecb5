import { join } from 'node:path'
import { startLocalKafka, type LocalKafka } from '../../local/kafka.ts'
import { ensureQuickParts } from '../../local/class-archives.ts'
import { startLocalRegistry, type LocalRegistry } from '../../local/registry.ts'
import type { Screen } from './screen.ts'
import { kafkaFolder, type LocalServerPorts } from './server-ports.ts'

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
