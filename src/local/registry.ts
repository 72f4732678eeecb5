import { PostriderError } from '../errors.ts'
import { startJavaServer, type LocalServer } from './java-server.ts'
import type { LocalParts } from './parts.ts'
import { freePort, isPortFree, startOnFreePorts } from './ports.ts'
import { claimStateFolder } from './state-folder.ts'

export interface LocalRegistry extends LocalServer {
  /** The base of the Confluent API, for SCHEMA_REGISTRY_URL. */
  url: string
}

export interface LocalRegistryOptions {
  parts: LocalParts
  /** Schemas and their ids live here. Records name schemas by id: it must be kept as long as Kafka's folder. */
  dataDir: string
  /** 0 (the default) picks a free one. */
  port?: number
  /** What changes the port, for the line that says that it is taken: `--registry-port`. */
  portSetting?: string
  signal?: AbortSignal
}

const name = 'the schema registry'

/** The base of the Confluent API of a local registry. */
export const localRegistryUrl = (port: number): string => `http://127.0.0.1:${port}/apis/ccompat/v7`

/**
 * Starts a real schema registry (Apicurio, which speaks Confluent's API) on 127.0.0.1, and resolves once it
 * answers. Throws a `local` error when the port is taken, the folder is in use or it does not start.
 */
export async function startLocalRegistry(options: LocalRegistryOptions): Promise<LocalRegistry> {
  const dataDir = await claimStateFolder(options.dataDir, name)
  return startOnFreePorts(() => startOnce(options, dataDir))
}

async function startOnce(options: LocalRegistryOptions, dataDir: string): Promise<LocalRegistry> {
  const port = options.port || (await freePort())
  if (!(await isPortFree(port))) {
    throw new PostriderError(
      'local',
      `port ${port} is taken: if a schema registry listens there, set SCHEMA_REGISTRY_URL and KAFKA_BROKERS ` +
        'to use it and its Kafka; otherwise stop what listens there' +
        (options.portSetting ? `, or give another port with ${options.portSetting}` : ''),
    )
  }
  const url = localRegistryUrl(port)
  const server = await startJavaServer({
    name,
    java: options.parts.java,
    args: [
      ...['-Xmx384m', ...options.parts.registryFlags],
      ...['-cp', options.parts.registryClassPath, 'io.quarkus.runner.GeneratedMain'],
    ],
    env: {
      QUARKUS_HTTP_HOST: '127.0.0.1',
      QUARKUS_HTTP_PORT: String(port),
      QUARKUS_HTTP_ACCESS_LOG_ENABLED: 'false',
      // On disk before it is answered: an id that was given out must survive a kill -9.
      APICURIO_DATASOURCE_URL: 'jdbc:h2:file:./db;WRITE_DELAY=0',
    },
    dataDir,
    port,
    logName: 'registry.log',
    isReady: () => isReady(url),
    signal: options.signal,
  })
  return { ...server, url }
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/subjects`, { signal: AbortSignal.timeout(5000) })
    await response.arrayBuffer()
    return response.ok
  } catch {
    return false
  }
}
