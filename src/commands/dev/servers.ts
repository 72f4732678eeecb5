import { join } from 'node:path'
import type { LocalServer } from '../../local/java-server.ts'
import { startLocalKafka } from '../../local/kafka.ts'
import { ensureLocalParts } from '../../local/parts.ts'
import { startLocalRegistry } from '../../local/registry.ts'
import type { Screen } from './screen.ts'

/**
 * Starts Kafka and the registry with what they kept. Throws a `local` error, with neither left running, when Java
 * or Maven is missing, a port is taken, or another `dev` runs in the folder.
 */
export async function startServers(options: {
  folder: string
  kafkaPort: number
  registryPort: number
  screen: Screen
  signal: AbortSignal
}): Promise<{ kafka: LocalServer; registry: LocalServer }> {
  const { folder, screen } = options
  let isFirstText = true
  const parts = await ensureLocalParts({
    onProgress: (text) => {
      if (isFirstText)
        screen.ready('download', 'Kafka and a registry by Maven, 160 MB, once for all checkouts')
      isFirstText = false
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
      dataDir: join(folder, 'kafka'),
      port: options.kafkaPort,
      portSetting: '--kafka-port (DEV_KAFKA_PORT)',
      signal,
    }),
    startLocalRegistry({
      parts,
      dataDir: join(folder, 'registry'),
      port: options.registryPort,
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
