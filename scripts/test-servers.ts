// A Kafka and a schema registry for one run of tests, in a temporary folder.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../src/errors.ts'
import { startLocalKafka } from '../src/local/kafka.ts'
import { ensureQuickParts } from '../src/local/class-archives.ts'
import { startLocalRegistry } from '../src/local/registry.ts'
import { isAlive } from '../src/local/state-folder.ts'

const folderPrefix = 'postrider-test-'
const properties = {
  // Tests of members that are killed have sessions of 1.5 s; other brokers that are named must allow that, too.
  'group.min.session.timeout.ms': 1_000,
  // This broker is not killed, and on a busy machine it may be slow for seconds.
  'broker.session.timeout.ms': 30_000,
}

/**
 * Starts the servers, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others, runs, and leaves neither process
 * nor file behind.
 * @param run given what names the servers to the tests, and a folder that is removed afterwards
 */
export async function withTestServers<T>(
  signal: AbortSignal,
  run: (env: Record<string, string>, folder: string) => Promise<T>,
): Promise<T> {
  await removeLeftovers()
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`))
  const started: { kill(): Promise<void> }[] = []
  const keep = <T extends { kill(): Promise<void> }>(server: T): T => {
    started.push(server)
    return server
  }
  try {
    const { TEST_KAFKA_BROKERS, TEST_REGISTRY_URL } = process.env
    if (TEST_KAFKA_BROKERS && TEST_REGISTRY_URL) return await run({}, folder)
    const begin = performance.now()
    const parts = await ensureQuickParts({ onProgress: showProgress, signal })
    const starting = [
      startLocalKafka({ parts, dataDir: join(folder, 'kafka'), properties, signal }).then(keep),
      startLocalRegistry({ parts, dataDir: join(folder, 'registry'), signal }).then(keep),
    ] as const
    await Promise.allSettled(starting)
    const [kafka, registry] = await Promise.all(starting)
    const seconds = ((performance.now() - begin) / 1000).toFixed(1)
    showProgress(`Kafka ${kafka.brokers.join()} and registry ${registry.url} ready after ${seconds} s\n`)
    const env = {
      TEST_KAFKA_BROKERS: kafka.brokers.join(),
      TEST_REGISTRY_URL: registry.url,
      // What tests need to start a broker without formatting its folder.
      TEST_KAFKA_FORMATTED: join(kafka.dataDir, 'log'),
    }
    return await run(env, folder)
  } finally {
    // What they hold is thrown away: no need to let them close their files.
    await Promise.all(started.map((server) => server.kill()))
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** One line, written over and over in a terminal; elsewhere only what is final. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
  else if (text.endsWith('\n')) process.stderr.write(text)
}

/** Removes the folders of runs that were killed. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(folderPrefix)
      ? /^(\d+)-/.exec(name.slice(folderPrefix.length))?.[1]
      : undefined
    if (!pid || isAlive(Number(pid))) continue
    // A disk that such a run has mounted there, say, is no reason not to test.
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch((error: unknown) =>
      console.error(`left as it is: ${messageOf(error)}`),
    )
  }
}
