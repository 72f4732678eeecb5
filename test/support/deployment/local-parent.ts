// A process that starts a local Kafka and a registry and then only waits: for tests that kill it.
import { join } from 'node:path'
import { startLocalKafka } from '../../../src/local/kafka.ts'
import { ensureLocalParts } from '../../../src/local/parts.ts'
import { startLocalRegistry } from '../../../src/local/registry.ts'

const folder = process.argv[2] as string
const parts = await ensureLocalParts()
const [kafka, registry] = await Promise.all([
  startLocalKafka({ parts, dataDir: join(folder, 'kafka') }),
  startLocalRegistry({ parts, dataDir: join(folder, 'registry') }),
])
process.send?.({
  kafka: { pid: kafka.pid, port: kafka.port },
  registry: { pid: registry.pid, port: registry.port, url: registry.url },
})
