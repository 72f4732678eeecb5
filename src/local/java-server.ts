import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { PostriderError } from '../errors.ts'
import type { Part } from '../supervisor.ts'
import { lastWords, startChild, type ChildProcess } from './child-process.ts'
import { forgetChild, recordChild } from './state-folder.ts'

/** A server of ours that runs as a child process, ready for use. */
export interface LocalServer extends ChildProcess {
  /** As a reader knows it: `Kafka`, `the schema registry`. */
  name: string
  port: number
  dataDir: string
  logFile: string
}

/** Long enough for a slow laptop's first start; on an ordinary machine it takes 2-4 s. */
const readyDeadlineMs = 90_000

/** What keeps a Java server from writing anywhere but into its own folder. */
const tidyJava = ['-Djava.io.tmpdir=tmp', '-XX:-UsePerfData', '-XX:TieredStopAtLevel=1']

/**
 * Starts a Java server in its state folder and waits until `isReady` says true. Throws a `local` error with the
 * log's last words when it ends before, and when it is not ready in time; nothing is left running then.
 */
export async function startJavaServer(options: {
  name: string
  java: string
  args: readonly string[]
  env: Record<string, string>
  dataDir: string
  port: number
  logName: string
  isReady: () => Promise<boolean>
  signal: AbortSignal | undefined
}): Promise<LocalServer> {
  const { name, isReady, signal, port } = options
  const dataDir = resolve(options.dataDir)
  const logFile = join(dataDir, options.logName)
  signal?.throwIfAborted()
  const child = await startChild({
    command: options.java,
    args: [...tidyJava, ...options.args],
    cwd: dataDir,
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C.UTF-8', ...options.env },
    logFile,
  })
  const exited = child.exited.then(async (exit) => {
    await forgetChild(dataDir).catch(() => {})
    return exit
  })
  try {
    await recordChild(dataDir, child.pid)
    const overdue = AbortSignal.timeout(readyDeadlineMs)
    // A question that is not answered must delay neither the end of the wait nor the word that the server has ended.
    const cut = Promise.race([aborted(overdue), ...(signal ? [aborted(signal)] : []), child.exited])
    while (!(await Promise.race([isReady(), cut.then(() => false)]))) {
      signal?.throwIfAborted()
      if (!child.isRunning()) {
        throw new PostriderError('local', `${name} did not start: ${await lastWords(logFile)} (${logFile})`)
      }
      if (overdue.aborted) {
        const seconds = readyDeadlineMs / 1000
        throw new PostriderError('local', `${name} was not ready after ${seconds} s: see ${logFile}`)
      }
      await delay(50)
    }
  } catch (error) {
    await child.kill()
    await exited
    throw error
  }
  const gone = (done: Promise<void>) => Promise.all([done, exited]).then(() => {})
  return {
    ...child,
    name,
    port,
    dataDir,
    logFile,
    exited,
    stop: (deadlineMs) => gone(child.stop(deadlineMs)),
    kill: () => gone(child.kill()),
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}

/** Runs a Java tool in a state folder to its end. Throws a `local` error with the log's last words if it fails. */
export async function runJavaTool(options: {
  what: string
  java: string
  args: readonly string[]
  dataDir: string
  logName: string
}): Promise<void> {
  const logFile = join(options.dataDir, options.logName)
  const child = await startChild({
    command: options.java,
    args: [...tidyJava, ...options.args],
    cwd: options.dataDir,
    env: { PATH: process.env.PATH ?? '', LC_ALL: 'C.UTF-8' },
    logFile,
  })
  const { code } = await child.exited
  if (code !== 0) {
    throw new PostriderError('local', `${options.what} failed: ${await lastWords(logFile)} (${logFile})`)
  }
}

/** A local server as a part for the supervisor: stops when asked, and fails when the server ends by itself. */
export function asPart(server: LocalServer): Part {
  return {
    name: server.name,
    run: async (signal) => {
      const exit = await Promise.race([aborted(signal), server.exited])
      if (!exit) return server.stop()
      const how = exit.signal ?? `code ${exit.code}`
      const words = await lastWords(server.logFile)
      throw new PostriderError(
        'local',
        `${server.name} ended by itself (${how}): ${words} (${server.logFile})`,
      )
    },
  }
}
