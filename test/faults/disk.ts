import { execFile } from 'node:child_process'
import { mkdir, statfs } from 'node:fs/promises'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A small file system for the broker that can be made full and roomy again. */
export interface Disk {
  folder: string
  /** Leaves no more than about `bytes` to write. */
  fill(bytes: number): Promise<void>
  empty(): Promise<void>
  unmount(): Promise<void>
}

const fullSize = '8g'

/** Mounts a tmpfs on the folder; says why not where that is not allowed. */
export async function mountDisk(folder: string): Promise<Disk | { impossible: string }> {
  await mkdir(folder, { recursive: true })
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=${fullSize}`, 'tmpfs', folder])
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim().split('\n').at(-1)! : String(error)
    return { impossible: `a tmpfs cannot be mounted here: ${reason}` }
  }
  const resize = (size: string) => run('mount', ['-o', `remount,size=${size}`, folder])
  return {
    folder,
    async fill(bytes) {
      const { blocks, bavail, bsize } = await statfs(folder)
      await resize(String((blocks - bavail) * bsize + bytes))
    },
    async empty() {
      await resize(fullSize)
    },
    async unmount() {
      // What has just ended may hold files for a moment.
      for (let tries = 0; ; tries++) {
        try {
          await run('umount', [folder])
          return
        } catch (error) {
          if (tries === 50) throw error
          await new Promise((resolve) => setTimeout(resolve, 100))
        }
      }
    },
  }
}
