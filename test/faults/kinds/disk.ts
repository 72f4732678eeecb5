import { execFile } from 'node:child_process'
import { mkdir, open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** A file system of the broker's own that can be made full and roomy again. */
export interface Disk {
  /** Leaves no more than about `bytes` to write. */
  fill(bytes: number): Promise<void>
  empty(): Promise<void>
  unmount(): Promise<void>
}

/** More than a long run writes. Neither the image nor the memory of a tmpfs is taken before it is written to. */
const roomyBytes = 24 * 1024 ** 3

/** Mounts one on the folder: an image on the disk, else a tmpfs; says why not where neither is allowed. */
export async function mountDisk(folder: string): Promise<Disk | { impossible: string }> {
  await mkdir(folder, { recursive: true })
  const reasons: string[] = []
  for (const mount of [mountImage, mountTmpfs]) {
    try {
      return await mount(folder)
    } catch (error) {
      reasons.push(error instanceof Error ? error.message.trim().split('\n').at(-1)! : String(error))
    }
  }
  return { impossible: `neither an image nor a tmpfs can be mounted here: ${reasons.join('; ')}` }
}

/** Its bytes lie on the disk, not in memory: a run of an hour writes some gigabytes. */
async function mountImage(folder: string): Promise<Disk> {
  const image = `${folder}.img`
  const ballast = join(folder, 'ballast')
  try {
    const file = await open(image, 'w')
    await file.truncate(roomyBytes)
    await file.close()
    await run('mkfs.ext4', ['-q', '-m', '0', '-O', '^has_journal', image])
    // Room is taken when it is written to, so that a full disk refuses what Kafka writes. Where it is taken later, the
    // kernel warned of extents that it could not finish, of what Kafka may have acknowledged: a fault of the rig.
    await run('mount', ['-o', 'loop,nodelalloc,dioread_lock', image, folder])
  } catch (error) {
    await rm(image, { force: true })
    throw error
  }
  // Kafka takes every folder in its own for a partition's, and this one has none of the names that they have.
  await rm(join(folder, 'lost+found'), { recursive: true })
  return {
    async fill(bytes) {
      const { bavail, bsize } = await statfs(folder)
      try {
        await run('fallocate', ['-l', String(Math.max(bsize, bavail * bsize - bytes)), ballast])
      } catch (error) {
        // The broker writes meanwhile: fallocate has taken all that was left.
        if (!String(error).includes('No space left')) throw error
      }
    },
    empty: () => rm(ballast, { force: true }),
    async unmount() {
      await unmount(folder)
      await rm(image, { force: true })
    },
  }
}

async function mountTmpfs(folder: string): Promise<Disk> {
  await run('mount', ['-t', 'tmpfs', '-o', `size=${roomyBytes}`, 'tmpfs', folder])
  const resize = (bytes: number) => run('mount', ['-o', `remount,size=${bytes}`, folder])
  return {
    async fill(bytes) {
      const { blocks, bavail, bsize } = await statfs(folder)
      await resize((blocks - bavail) * bsize + bytes)
    },
    async empty() {
      await resize(roomyBytes)
    },
    unmount: () => unmount(folder),
  }
}

/** What has just ended may hold files for a moment. */
async function unmount(folder: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await run('umount', [folder])
      return
    } catch (error) {
      if (tries === 50) throw error
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }
}
