import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startLocalKafka, type LocalKafka } from '../../../src/local/kafka.ts'
import { ensureLocalParts } from '../../../src/local/parts.ts'
import { copyFormat } from '../kafka/formatted-folder.ts'

function required(name: string): string {
  const value = process.env[name]
  if (!value)
    throw new Error(`${name} is not set: run tests by \`npm test\`, which starts a Kafka and a registry`)
  return value
}

/** The one Kafka and the one registry of this test run, started by scripts/test.ts. */
export const brokers = (): string[] => required('TEST_KAFKA_BROKERS').split(',')
export const registryUrl = (): string => required('TEST_REGISTRY_URL')

/** A topic prefix of this test's own, so that tests share brokers and nothing else. */
export const uniquePrefix = (): string => `t${randomBytes(5).toString('hex')}.`

/** A folder of this test's own, removed after it. */
export async function temporaryFolder(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  return folder
}

/** A broker that a test may do anything to. */
export interface OwnKafka {
  brokers: string[]
  /** Ends it as a crash does; what it was told is on its disk. */
  kill(): Promise<void>
  /** Ends it in good order. */
  stop(): Promise<void>
  /** Starts it again, on the same port and with the same records, after `kill` or `stop`. */
  start(): Promise<void>
  /** Stops it from answering, with its connections open, until `thaw`. */
  freeze(): void
  thaw(): void
}

/**
 * Starts a Kafka for one test (2-4 s), for those that end or freeze it; gone after the test.
 * @param version the newest unless given; one that is not in the cache yet is fetched
 */
export async function ownKafka(
  t: TestContext,
  properties: Record<string, string | number | boolean> = {},
  version?: string,
): Promise<OwnKafka> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  const chosen = version !== undefined && { POSTRIDER_KAFKA_VERSION: version }
  const parts = await ensureLocalParts({ env: { ...process.env, ...chosen } })
  if (version === undefined) await copyFormat(dataDir, [1])
  let kafka: LocalKafka | null = null
  // One step, for `after` runs what was registered first first: the broker must be gone before its folder.
  t.after(async () => {
    await kafka?.kill()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  })
  const start = async (port: number) => (kafka = await startLocalKafka({ parts, dataDir, port, properties }))
  const { port, brokers } = await start(0)
  const running = () => kafka as LocalKafka
  return {
    brokers,
    kill: () => running().kill(),
    stop: () => running().stop(),
    start: async () => void (await start(port)),
    freeze: () => void process.kill(running().pid, 'SIGSTOP'),
    thaw: () => void process.kill(running().pid, 'SIGCONT'),
  }
}
