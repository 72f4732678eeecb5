import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startChild, type ChildExit } from '../../../src/local/child-process.ts'
import { type Deployment } from './deployment.ts'
import { until } from '../until.ts'
import { bareEnv } from './bare-env.ts'

/** A line of the process's own log. */
export type ProcessLine = Record<string, unknown> & { level: string; msg: string }

/** `postrider forwarder` in a process of its own, as a user runs it; gone after the test, whatever state it is in. */
export interface ForwarderProcess {
  pid: number
  /** Resolves when it has ended, whoever ended it. */
  exited: Promise<ChildExit>
  isRunning(): boolean
  /** Its log so far. */
  log(): ProcessLine[]
  /** What it wrote beside its log: warnings of Node, last words. */
  stray(): string[]
  /** The first line that contains the text, now or within `withinMs`. */
  logged(text: string, withinMs?: number): Promise<ProcessLine>
  /** What /readyz says; null while it does not answer. */
  readiness(): Promise<{ ready: boolean; checks: Record<string, string> } | null>
  /** Resolves once it takes work. */
  ready(withinMs?: number): Promise<void>
  /** SIGKILL: it cannot say goodbye to anybody. */
  kill(): Promise<void>
  /** SIGTERM; `exited` tells when it is through. */
  terminate(): void
  /** SIGSTOP: from here on it does nothing, with its connections open, until `thaw`. */
  freeze(): void
  thaw(): void
  /** CPU time used so far, user and system, in seconds. */
  cpuSeconds(): number
}

const entry = join(import.meta.dirname, '..', '..', '..', 'src', 'main.ts')
/** What /proc counts CPU time in (USER_HZ): 100 on every Linux. */
const ticksPerSecond = 100

/** Starts it and waits until it takes work, unless told not to. */
export async function startForwarderProcess(
  t: TestContext,
  deployment: Deployment,
  { env = {}, waitUntilReady = true }: { env?: Record<string, string>; waitUntilReady?: boolean } = {},
): Promise<ForwarderProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  const logFile = join(folder, 'forwarder.log')
  const child = await startChild({
    command: process.execPath,
    args: [entry, 'forwarder'],
    cwd: folder,
    env: { ...bareEnv, ...deployment.env, METRICS_PORT: '0', ...env },
    logFile,
  })
  t.after(async () => {
    await child.kill()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  const lines = () => {
    const text = readFileSync(logFile, 'utf8')
    return text
      .slice(0, text.lastIndexOf('\n') + 1)
      .split('\n')
      .filter((line) => line !== '')
  }
  const isJson = (line: string) => line.startsWith('{')
  const log = () =>
    lines()
      .filter(isJson)
      .map((line) => JSON.parse(line) as ProcessLine)
  const find = (text: string) => log().find(({ msg }) => msg.includes(text))
  const self: ForwarderProcess = {
    pid: child.pid,
    exited: child.exited,
    isRunning: () => child.isRunning(),
    log,
    stray: () => lines().filter((line) => !isJson(line)),
    async logged(text, withinMs = 15_000) {
      await until(() => find(text) !== undefined || !child.isRunning(), withinMs, `the log line "${text}"`)
      const line = find(text)
      if (!line) throw new Error(`it ended without logging "${text}": ${await readFile(logFile, 'utf8')}`)
      return line
    },
    async readiness() {
      const port = find('metrics at')?.port as number | undefined
      if (port === undefined) return null
      try {
        const response = await fetch(`http://127.0.0.1:${port}/readyz`, {
          signal: AbortSignal.timeout(2_000),
        })
        return (await response.json()) as { ready: boolean; checks: Record<string, string> }
      } catch {
        return null
      }
    },
    async ready(withinMs = 30_000) {
      await until(
        async () => {
          if (!child.isRunning()) throw new Error(`it ended: ${await readFile(logFile, 'utf8')}`)
          return (await self.readiness())?.ready === true
        },
        withinMs,
        'readiness',
      )
    },
    kill: () => child.kill(),
    terminate: () => void process.kill(child.pid, 'SIGTERM'),
    freeze: () => void process.kill(child.pid, 'SIGSTOP'),
    thaw: () => void process.kill(child.pid, 'SIGCONT'),
    cpuSeconds() {
      const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8')
      // The second field, the command's name in brackets, may hold spaces.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
    },
  }
  if (waitUntilReady) await self.ready()
  return self
}
