// Formatting the folder of a broker starts a JVM, which takes a second of CPU a node. What it leaves behind is the same for
// every folder but for a few ids: tests that need a broker of their own get it from the broker of the run.
import { randomBytes } from 'node:crypto'
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const newId = (): string => randomBytes(16).toString('base64url')

/**
 * Makes the state folder of a new Kafka with these nodes, as `formatOnce` of src/local leaves it. Does nothing where the run
 * has not started its broker itself; the folder is formatted then.
 * @param nodeIds 1, or 1 to 3
 */
export async function copyFormat(dataDir: string, nodeIds: readonly number[]): Promise<void> {
  const formatted = process.env.TEST_KAFKA_FORMATTED
  if (!formatted) return
  const clusterId = newId()
  for (const id of nodeIds) {
    const log = join(dataDir, ...(nodeIds.length === 1 ? [] : [`node-${id}`]), 'log')
    await mkdir(log, { recursive: true })
    await copyFile(join(formatted, 'bootstrap.checkpoint'), join(log, 'bootstrap.checkpoint'))
    const lines = ['version=1', `node.id=${id}`, `cluster.id=${clusterId}`, `directory.id=${newId()}`]
    await writeFile(join(log, 'meta.properties'), lines.map((line) => `${line}\n`).join(''))
  }
  await writeFile(join(dataDir, 'cluster-id'), clusterId)
}
