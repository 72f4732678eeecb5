import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { PostriderError } from '../errors.ts'
import { runJavaTool } from './java-server.ts'
import type { LocalParts } from './parts.ts'
import { claimStateFolder } from './state-folder.ts'

/** A cluster of one node keeps its records in `log`; each of three nodes has a folder of its own, `node-1` and on. */
const nodeFolderName = (id: number): string => `node-${id}`

/** How many nodes a state folder was begun with; null when nothing is kept there. */
export function keptNodes(dataDir: string): 1 | 3 | null {
  if (existsSync(join(dataDir, nodeFolderName(1)))) return 3
  return existsSync(join(dataDir, 'log')) ? 1 : null
}

const nodeCount = (count: number): string => (count === 1 ? 'one node' : 'three nodes')

/**
 * Creates the folders of the nodes and waits for processes that a killed run left behind. Throws a `local` error
 * when another run holds them, and when the folder was begun with another number of nodes.
 * @returns the folder of each node, in the order of their ids
 */
export async function prepareNodeFolders(options: {
  dataDir: string
  nodeIds: readonly number[]
}): Promise<string[]> {
  const { nodeIds } = options
  const dataDir = resolve(options.dataDir)
  const kept = keptNodes(dataDir)
  if (kept !== null && kept !== nodeIds.length) {
    throw new PostriderError(
      'local',
      `${dataDir} holds the records of a Kafka of ${nodeCount(kept)}: start ${nodeCount(kept)} there, or ` +
        `choose another folder for ${nodeCount(nodeIds.length)}`,
    )
  }
  if (nodeIds.length === 1) return [await claimStateFolder(dataDir, 'Kafka')]
  return Promise.all(
    nodeIds.map((id) => claimStateFolder(join(dataDir, nodeFolderName(id)), `Kafka node ${id}`)),
  )
}

/**
 * Gives new folders their cluster id. The id is noted last: folders without the note were never started on
 * (their formatting was cut off), so what is in them can be thrown away. `server.properties` must be there.
 */
export async function formatOnce(options: {
  parts: LocalParts
  dataDir: string
  folders: readonly string[]
  /** Further arguments of the storage tool's `format`. */
  formatArgs: readonly string[]
}): Promise<void> {
  const { parts, folders } = options
  const note = join(options.dataDir, 'cluster-id')
  if (await readFile(note).catch(() => null)) return
  const clusterId = newClusterId()
  const formatting = folders.map(async (folder) => {
    await rm(join(folder, 'log'), { recursive: true, force: true })
    await runJavaTool({
      what: "formatting Kafka's storage",
      java: parts.java,
      args: [
        ...parts.kafkaFlags,
        ...['-cp', parts.kafkaClassPath, '-Dorg.slf4j.simpleLogger.defaultLogLevel=warn'],
        ...['kafka.tools.StorageTool', 'format', '-t', clusterId, '-c', 'server.properties'],
        ...options.formatArgs,
      ],
      dataDir: folder,
      logName: 'format.log',
    })
  })
  // Where one fails, the others are waited for: nothing of them may write into a folder that the caller removes.
  await Promise.allSettled(formatting)
  await Promise.all(formatting)
  await writeFile(`${note}.partial`, clusterId)
  await rename(`${note}.partial`, note)
}

/** 16 random bytes as Kafka writes them; never with a `-` in front, which would read as a flag. */
function newClusterId(): string {
  for (;;) {
    const id = randomBytes(16).toString('base64url')
    if (!id.startsWith('-')) return id
  }
}
