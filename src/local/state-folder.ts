import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { PostriderError } from '../errors.ts'

const run = promisify(execFile)

/** Whether a process with this id exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** A process by id and start time, because ids are reused (after a restart of the machine, the same ones). */
interface ProcessMark {
  pid: number
  started: string
}

/** When a process was started, by `ps`; empty when there is no such process or no `ps`. */
async function startOf(pid: number): Promise<string> {
  const env = { PATH: process.env.PATH, LC_ALL: 'C' }
  const found = await run('ps', ['-o', 'lstart=', '-p', String(pid)], { env }).catch(() => null)
  return found?.stdout.trim() ?? ''
}

const isSame = async (mark: ProcessMark) => isAlive(mark.pid) && (await startOf(mark.pid)) === mark.started

const recordFile = (dataDir: string) => join(dataDir, 'process.json')
/** A child ends within 5 s of its parent's death; a little more for a busy machine. */
const leftoverDeadlineMs = 15_000

/**
 * Makes a part's state folder ready for one child process: creates it for this user alone, and waits for a
 * child that a killed run has left dying. Returns its absolute path. Throws a `local` error when another run that is
 * alive holds the folder.
 */
export async function claimStateFolder(folder: string, partName: string): Promise<string> {
  const dataDir = resolve(folder)
  await mkdir(dataDir, { recursive: true, mode: 0o700 })
  await chmod(dataDir, 0o700)
  const text = await readFile(recordFile(dataDir), 'utf8').catch(() => null)
  if (text !== null) await waitForLeftover(dataDir, partName, text)
  // Native libraries are unpacked here and stay behind after a kill: emptied each time.
  await rm(join(dataDir, 'tmp'), { recursive: true, force: true })
  await mkdir(join(dataDir, 'tmp'))
  return dataDir
}

async function waitForLeftover(dataDir: string, partName: string, text: string): Promise<void> {
  let marks: { owner: ProcessMark; child: ProcessMark }
  try {
    marks = JSON.parse(text)
  } catch {
    return // The run died while it wrote this, just after the child's start: nothing to wait for.
  }
  const deadline = performance.now() + leftoverDeadlineMs
  while (performance.now() < deadline && (await isSame(marks.child))) {
    if (await isSame(marks.owner)) {
      const advice = `stop process ${marks.owner.pid} first`
      throw new PostriderError('local', `${partName} runs in ${dataDir} already: ${advice}`)
    }
    await delay(50)
  }
}

/** Notes which process runs in the folder, for the next run. */
export async function recordChild(dataDir: string, child: number): Promise<void> {
  const mark = async (pid: number): Promise<ProcessMark> => ({ pid, started: await startOf(pid) })
  const marks = { owner: await mark(process.pid), child: await mark(child) }
  await writeFile(recordFile(dataDir), JSON.stringify(marks))
}

export async function forgetChild(dataDir: string): Promise<void> {
  await rm(recordFile(dataDir), { force: true })
}
