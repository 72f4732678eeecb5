import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startLocalKafka, type LocalKafka, type LocalKafkaOptions } from '../../src/local/kafka.ts'
import { ensureLocalParts } from '../../src/local/parts.ts'

export type ClusterOptions = Omit<LocalKafkaOptions, 'parts' | 'dataDir' | 'nodes' | 'signal'>

/**
 * Starts three brokers for one test, which may do anything to them (about 10 s); gone after the test. Only in files
 * named `*.cluster.test.ts`: scripts/test.ts runs those one at a time, for two cores carry no six brokers.
 */
export async function startCluster(
  t: Pick<TestContext, 'after'>,
  options: ClusterOptions = {},
): Promise<LocalKafka> {
  if (!process.env.TEST_CLUSTERS)
    throw new Error('three brokers at once: name the file *.cluster.test.ts, and run it by scripts/test.ts')
  const dataDir = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  let kafka: LocalKafka | null = null
  // One step, for `after` runs what was registered first first: the brokers must be gone before their folder.
  t.after(async () => {
    await kafka?.kill()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  })
  kafka = await startLocalKafka({ ...options, parts: await ensureLocalParts(), dataDir, nodes: 3 })
  return kafka
}
