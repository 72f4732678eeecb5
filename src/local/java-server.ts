import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { access, constants } from 'node:fs/promises'
import { join, resolve, delimiter } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
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

const run = promisify(execFile)

const oldestJava = 17

/** The file that a command's name stands for on the PATH, or null. */
export async function findCommand(name: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    if (folder === '') continue
    const file = join(folder, name)
    if (await isExecutable(file)) return file
  }
  return null
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/**
 * The `java` to run the local Kafka and registry with: JAVA_HOME's, else the PATH's. Throws a `local` error
 * that names both ways on when there is none of version 17 or later.
 */
export async function findJava(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  if (process.platform === 'win32') {
    throw await cannotRun('the local Kafka and registry do not run on Windows itself', env)
  }
  const ofHome = env.JAVA_HOME ? join(env.JAVA_HOME, 'bin', 'java') : null
  const java = ofHome && (await isExecutable(ofHome)) ? ofHome : await findCommand('java', env)
  if (java === null) throw await cannotRun('Java is not installed', env)
  const version = await javaVersion(java)
  if (version === null) throw await cannotRun(`${java} does not run`, env)
  if (version < oldestJava) throw await cannotRun(`${java} is Java ${version}, which is too old`, env)
  return java
}

/** The `mvn` that gets the jars. Only needed while they are not in the cache. */
export async function findMaven(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const maven = await findCommand('mvn', env)
  if (maven === null) throw await cannotRun('Maven is not installed', env)
  return maven
}

/** The one line about a tool that is missing: what, why it is needed, and both ways on. */
async function cannotRun(what: string, env: NodeJS.ProcessEnv): Promise<PostriderError> {
  const docker = (await findCommand('docker', env)) !== null
  return new PostriderError(
    'local',
    `${what}, and the local Kafka and schema registry need Java ${oldestJava} or later and Maven: ` +
      (docker
        ? 'install both, or run everything in containers with `docker compose up` (Docker is here)'
        : 'install both, or install Docker and run everything in containers with `docker compose up`') +
      ', or set KAFKA_BROKERS and SCHEMA_REGISTRY_URL to those that you have',
  )
}

/** The feature version: 17 of `17.0.15`, 8 of `1.8.0_412`; null when it is not known. */
async function javaVersion(java: string): Promise<number | null> {
  const answer = await run(java, ['-version'], { timeout: 20_000 }).catch(() => null)
  const found = /version "(?:1\.)?(\d+)/.exec(answer ? answer.stderr + answer.stdout : '')
  return found && Number(found[1])
}
