// Runs test files side by side, each in a process of its own, as many at a time as the machine has room for.
import { readFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { pathToFileURL } from 'node:url'
import { join, relative } from 'node:path'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { setTimeout as delay } from 'node:timers/promises'

export interface RunOptions {
  signal: AbortSignal
  /** Flags for each file's process, such as `--test-name-pattern=retry`. */
  flags: readonly string[]
  /** For one test. */
  timeoutMs: number
  cwd: string
  /** Where each file's process says what it took of the processors. */
  cpuFile: string
}

export interface RunResult {
  /** All tests passed. */
  isGood: boolean
  /** Of each file, in seconds. */
  seconds: ReadonlyMap<string, number>
}

type Counts = Record<'tests' | 'suites' | 'passed' | 'failed' | 'cancelled' | 'skipped' | 'todo', number>

/** Tests mostly wait for brokers and timers, so more of them run at once than there are cores. */
const maxAtOnce = 6
/** These run however busy the machine is. */
const minAtOnce = 2
/** Three brokers take most of two cores, and these tests watch how soon leaders move: they run alone. */
export const startsCluster = (file: string): boolean => file.endsWith('.cluster.test.ts')
/** Below this share of idle time no further file is started: tests wait for things with a deadline. */
const minIdle = 0.25
/** Files whose times are printed: they decide when a run ends. */
const maxSlowest = 15
/** A process needs about that long to load its modules, and is not seen in the machine's load before. */
const loadingMs = 400

/**
 * Starts the files in their order, and those that start a cluster after all others, each alone. Prints a file's results when it
 * has ended, and in the end the failed tests and the sums, as Node's test runner does.
 */
export async function runTestFiles(files: readonly string[], options: RunOptions): Promise<RunResult> {
  const reporter = new spec()
  reporter.pipe(process.stdout)
  const begin = performance.now()
  const sums: Counts = { tests: 0, suites: 0, passed: 0, failed: 0, cancelled: 0, skipped: 0, todo: 0 }
  const waiting = files.filter((file) => !startsCluster(file))
  const clusters = files.filter(startsCluster)
  const running = new Map<string, Promise<void>>()
  const seconds = new Map<string, number>()

  const start = (file: string): void => {
    const begun = performance.now()
    const ended = runTestFile(file, options).then(({ events, counts }) => {
      running.delete(file)
      seconds.set(file, Math.round((performance.now() - begun) / 100) / 10)
      for (const event of events) reporter.write(event)
      for (const key of Object.keys(sums) as (keyof Counts)[]) sums[key] += counts[key]
    })
    running.set(file, ended)
  }

  let load = readLoad()
  while (waiting.length + clusters.length + running.size > 0 && !options.signal.aborted) {
    await Promise.race([delay(loadingMs), ...running.values()])
    const now = readLoad()
    const idle = (now.idle - load.idle) / Math.max(1, now.total - load.total)
    load = now
    const hasRoom = running.size < minAtOnce || (running.size < maxAtOnce && idle >= minIdle)
    if (waiting.length > 0) {
      if (hasRoom) start(waiting.shift()!)
    } else if (clusters.length > 0 && running.size === 0) start(clusters.shift()!)
  }
  await Promise.all(running.values())

  const cpu = await cpuSeconds(options)
  const slowest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, maxSlowest)
  if (files.length > maxSlowest)
    for (const [file, each] of slowest) {
      const message = `${each} s, ${(cpu.get(file) ?? 0).toFixed(1)} s of CPU ${file}`
      reporter.write({ type: 'test:diagnostic', data: { nesting: 0, message, level: 'info' } })
    }
  const lines = { ...sums, duration_ms: Math.round(performance.now() - begin) }
  for (const [name, value] of Object.entries(lines)) {
    const label = { passed: 'pass', failed: 'fail' }[name] ?? name
    const data = { nesting: 0, message: `${label} ${value}`, level: 'info' }
    reporter.write({ type: 'test:diagnostic', data })
  }
  await new Promise<void>((resolve) => reporter.end(resolve))
  return { isGood: sums.failed + sums.cancelled === 0, seconds }
}

/** By file; of one that was killed nothing is known. */
async function cpuSeconds({ cpuFile, cwd }: RunOptions): Promise<Map<string, number>> {
  const lines = (await readFile(cpuFile, 'utf8').catch(() => '')).split('\n').slice(0, -1)
  return new Map(
    lines.map((line) => {
      const [file, seconds] = line.split('\t')
      return [relative(cwd, file!), Number(seconds)]
    }),
  )
}

/** A file's events together: the reporter tells which test is part of which by their order. */
async function runTestFile(
  file: string,
  { signal, flags, timeoutMs, cwd }: RunOptions,
): Promise<{ events: TestEvent[]; counts: Counts }> {
  const events: TestEvent[] = []
  let counts: Counts | null = null
  const execArgv = ['--import', pathToFileURL(join(cwd, 'test/support/end-of-process.ts')).href, ...flags]
  for await (const event of run({ files: [file], cwd, execArgv, timeout: timeoutMs, signal })) {
    const { type, data } = event as { type: string; data: { file?: string; counts: Counts } }
    // What the runner says of the whole run, which is this file.
    if (type === 'test:summary' && data.file === undefined) counts = data.counts
    if (data.file !== undefined) events.push(event as TestEvent)
  }
  return { events, counts: counts! }
}

/** Milliseconds since the machine's start, of all cores. */
function readLoad(): { idle: number; total: number } {
  const sum = { idle: 0, total: 0 }
  for (const { times } of cpus()) {
    sum.idle += times.idle
    sum.total += Object.values(times).reduce((total, time) => total + time, 0)
  }
  return sum
}
