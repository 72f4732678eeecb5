// Runs test files side by side in processes, as many at a time as the machine has room for.
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { pathToFileURL } from 'node:url'
import { basename, join, relative } from 'node:path'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { setTimeout as delay } from 'node:timers/promises'
import type { TestProcess, TestSchedule } from './test-schedule.ts'

export interface RunOptions {
  signal: AbortSignal
  /** Flags for each file's process, such as `--test-name-pattern=retry`. */
  flags: readonly string[]
  /** For one test. */
  timeoutMs: number
  cwd: string
  /** Where each process says what it took of the processors. */
  cpuFile: string
  /** For what is needed to run several files in one process. */
  folder: string
}

export interface RunResult {
  /** All tests passed. */
  isGood: boolean
  /** Of each process, by name: how long it took, and what of the processors; in seconds. */
  seconds: ReadonlyMap<string, number>
  cpu: ReadonlyMap<string, number>
}

type Counts = Record<'tests' | 'suites' | 'passed' | 'failed' | 'cancelled' | 'skipped' | 'todo', number>

/** Files whose times are printed: they decide when a run ends. */
const maxSlowest = 15
/** A process needs about that long to load its modules, and is not seen in the machine's load before. */
const loadingMs = 400
/** How busy the machine is shows only over some time: the kernel counts in ticks of 10 ms. */
const minSampleMs = 200

/**
 * Starts the processes as the schedule says. Prints a process's results when it has ended, and in the end the failed tests and
 * the sums, as Node's test runner does.
 */
export async function runTestFiles(schedule: TestSchedule, options: RunOptions): Promise<RunResult> {
  const reporter = new spec()
  reporter.pipe(process.stdout)
  const begin = performance.now()
  const sums: Counts = { tests: 0, suites: 0, passed: 0, failed: 0, cancelled: 0, skipped: 0, todo: 0 }
  const running = new Map<TestProcess, Promise<void>>()
  const seconds = new Map<string, number>()

  const start = (started: TestProcess): void => {
    const begun = performance.now()
    const ended = runTestProcess(started, schedule.yields(started), options).then(({ events, counts }) => {
      running.delete(started)
      schedule.ended(started)
      seconds.set(started.name, Math.round((performance.now() - begun) / 100) / 10)
      for (const event of events) reporter.write(event)
      for (const key of Object.keys(sums) as (keyof Counts)[]) sums[key] += counts[key]
    })
    running.set(started, ended)
  }

  let load = readLoad()
  let idle = 1
  while (!schedule.isDone && !options.signal.aborted) {
    await Promise.race([delay(loadingMs), ...running.values()])
    const now = readLoad()
    const total = now.total - load.total
    if (total >= minSampleMs * cpus().length) {
      idle = (now.idle - load.idle) / total
      load = now
    }
    const next = schedule.next(idle)
    if (!next) continue
    start(next)
    // It takes what was idle.
    idle = 0
  }
  await Promise.all(running.values())

  const diagnostic = (message: string): void =>
    void reporter.write({ type: 'test:diagnostic', data: { nesting: 0, message, level: 'info' } })
  const cpu = await cpuSeconds(options)
  const slowest = [...seconds].sort(([, a], [, b]) => b - a).slice(0, maxSlowest)
  if (seconds.size > maxSlowest) {
    for (const [name, each] of slowest)
      diagnostic(`${each} s, ${(cpu.get(name) ?? 0).toFixed(1)} s of CPU ${name}`)
    const total = [...cpu.values()].reduce((sum, each) => sum + each, 0)
    diagnostic(
      `${total.toFixed(0)} s of CPU all ${seconds.size} processes, without the brokers that they share`,
    )
  }
  const lines = { ...sums, duration_ms: Math.round(performance.now() - begin) }
  for (const [name, value] of Object.entries(lines))
    diagnostic(`${{ passed: 'pass', failed: 'fail' }[name] ?? name} ${value}`)
  await new Promise<void>((resolve) => reporter.end(resolve))
  return { isGood: sums.failed + sums.cancelled === 0, seconds, cpu }
}

/** By name; of a process that was killed nothing is known. */
async function cpuSeconds({ cpuFile, cwd, folder }: RunOptions): Promise<Map<string, number>> {
  const lines = (await readFile(cpuFile, 'utf8').catch(() => '')).split('\n').slice(0, -1)
  return new Map(
    lines.map((line) => {
      const [file, seconds] = line.split('\t') as [string, string]
      const isEntry = file.startsWith(folder)
      return [isEntry ? decodeURIComponent(basename(file, '.mjs')) : relative(cwd, file), Number(seconds)]
    }),
  )
}

/** A process's events together: the reporter tells which test is part of which by their order. */
async function runTestProcess(
  { name, files }: TestProcess,
  yields: boolean,
  { signal, flags, timeoutMs, cwd, folder }: RunOptions,
): Promise<{ events: TestEvent[]; counts: Counts }> {
  const events: TestEvent[] = []
  let counts: Counts | null = null
  const preloads = ['light-runner', 'end-of-process', ...(yields ? ['low-priority'] : [])]
  const execArgv = [
    ...preloads.flatMap((name) => ['--import', pathToFileURL(join(cwd, `test/support/${name}.ts`)).href]),
    ...flags,
  ]
  const entry =
    files.length === 1
      ? files[0]!
      : await writeEntry(join(folder, `${encodeURIComponent(name)}.mjs`), files, cwd)
  for await (const event of run({ files: [entry], cwd, execArgv, timeout: timeoutMs, signal })) {
    const { type, data } = event as { type: string; data: { file?: string; counts: Counts } }
    // What the runner says of the whole run, which is this process.
    if (type === 'test:summary' && data.file === undefined) counts = data.counts
    if (data.file !== undefined) events.push(event as TestEvent)
  }
  return { events, counts: counts! }
}

/** A module that loads the files, as a file of tests. */
async function writeEntry(entry: string, files: readonly string[], cwd: string): Promise<string> {
  const imports = files.map((file) => `import ${JSON.stringify(pathToFileURL(join(cwd, file)).href)}\n`)
  await writeFile(entry, imports.join(''))
  return entry
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
