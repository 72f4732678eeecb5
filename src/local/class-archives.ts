import { existsSync } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { LocalServer } from './java-server.ts'
import { startLocalKafka } from './kafka.ts'
import { ensureLocalParts, type LocalParts, type PartsOptions } from './parts.ts'
import { startLocalRegistry } from './registry.ts'

/** A JVM writes its archive while it ends. */
const writingMs = 60_000

/**
 * As `ensureLocalParts`, and has each server write an archive of its classes once, into the cache folder (a few
 * seconds, 70 MB): every later start takes half the CPU. Without archives, where a JVM can make none, all works as well.
 */
export async function ensureQuickParts(options: PartsOptions = {}): Promise<LocalParts> {
  const parts = await ensureLocalParts(options)
  const { kafka, registry } = parts.archiveFiles
  const signal = options.signal && { signal: options.signal }
  const making = [
    !existsSync(kafka) &&
      writeArchive(kafka, (flag, dataDir) =>
        startLocalKafka({ parts: { ...parts, kafkaFlags: [flag] }, dataDir, ...signal }),
      ),
    !existsSync(registry) &&
      writeArchive(registry, (flag, dataDir) =>
        startLocalRegistry({ parts: { ...parts, registryFlags: [flag] }, dataDir, ...signal }),
      ),
  ].filter((task) => task !== false)
  if (making.length === 0) return parts
  options.onProgress?.('preparing quick starts')
  await Promise.all(making)
  return ensureLocalParts(options)
}

/** Starts and ends a server that leaves its archive at `file`, whole. What goes wrong only means that there is none. */
async function writeArchive(
  file: string,
  start: (flag: string, dataDir: string) => Promise<LocalServer>,
): Promise<void> {
  const folder = await mkdtemp(`${file}.partial-${process.pid}-`)
  const written = join(folder, 'classes.jsa')
  try {
    const server = await start(`-XX:ArchiveClassesAtExit=${written}`, join(folder, 'state'))
    await server.stop(writingMs)
    await rename(written, file)
  } catch {
    // The start that is waited for says what is wrong, if anything is.
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}
