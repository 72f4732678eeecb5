import { mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kafka, logLevel, type Admin } from 'kafkajs'
import { startLocalKafka, type LocalKafka, type LocalKafkaOptions } from '../../../src/local/kafka.ts'
import type { LocalKafkaNode } from '../../../src/local/kafka-node.ts'
import { ensureLocalParts } from '../../../src/local/parts.ts'
import { copyFormat } from '../kafka/formatted-folder.ts'
import { until } from '../until.ts'

export type ClusterOptions = Omit<LocalKafkaOptions, 'parts' | 'dataDir' | 'nodes' | 'formatArgs' | 'signal'>

/** A test's context, or what all tests of a file share: `{ after }` of node:test. */
interface Scope {
  after(end: () => Promise<void>): void
  signal?: AbortSignal
}

/**
 * Starts three brokers, to which tests may do anything (about 10 s); gone with their scope. Only in files named
 * `*.cluster.test.ts`: scripts/run-test-files.ts runs those one at a time, for two cores carry no six brokers.
 */
export async function startCluster(t: Scope, options: ClusterOptions = {}): Promise<LocalKafka> {
  if (!process.argv[1]?.endsWith('.cluster.test.ts'))
    throw new Error('three brokers at once: name the file *.cluster.test.ts, and run it by scripts/test.ts')
  const parts = await ensureLocalParts()
  const dataDir = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  await copyFormat(dataDir, [1, 2, 3])
  const { signal } = t
  const starting = startLocalKafka({ ...options, parts, dataDir, nodes: 3, ...(signal && { signal }) })
  // One step, for `after` runs what was registered first first: the brokers must be gone before their folder.
  t.after(async () => {
    await starting.then(
      (kafka) => kafka.kill(),
      () => {},
    )
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  })
  return starting
}

/** An admin client whose every request goes to this node, also while the cluster still counts on one that is dead. */
export async function adminOfNode(t: Scope, { port }: Pick<LocalKafkaNode, 'port'>): Promise<Admin> {
  const admin = new Kafka({
    brokers: [`127.0.0.1:${port}`],
    socketFactory: ({ onConnect }) => connect(port, '127.0.0.1', onConnect),
    logLevel: logLevel.NOTHING,
  }).admin()
  await admin.connect()
  t.after(() => admin.disconnect())
  return admin
}

/** The node that leads each partition of a topic, by partition; -1 where none does. */
export async function leadersOf(admin: Admin, topic: string): Promise<number[]> {
  const partitions = await partitionsOf(admin, topic)
  return partitions.map(({ leader }) => leader)
}

/** Waits until all three nodes, or as many as are to have it, hold every record of the topic. */
export async function untilInSync(admin: Admin, topic: string, withinMs = 60_000, copies = 3): Promise<void> {
  const isInSync = async () => (await partitionsOf(admin, topic)).every(({ isr }) => isr.length === copies)
  await until(isInSync, withinMs, `${copies} copies of ${topic} in sync`)
}

async function partitionsOf(admin: Admin, topic: string) {
  const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
  return topics[0]!.partitions.toSorted((a, b) => a.partitionId - b.partitionId)
}
