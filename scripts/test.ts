// Runs the tests against one real Kafka and one real schema registry, started for this run in a temporary
// folder, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others. Files named *.cluster.test.ts start three
// brokers of their own: they run beside the others, one at a time, and what they print comes after.
//
//   node scripts/test.ts                          all of test/**
//   node scripts/test.ts core faults/kill         files whose path contains one of these
//   node scripts/test.ts core --test-name-pattern=retry    flags go to Node's test runner
import { spawn, type ChildProcess } from 'node:child_process'
import { createReadStream } from 'node:fs'
import { glob, open } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { messageOf } from '../src/errors.ts'
import { withTestServers } from './test-servers.ts'

const root = join(import.meta.dirname, '..')
/** For one test; a slow machine and a broker that restarts fit in. Three brokers that do take longer. */
const testTimeoutMs = 180_000
const clusterTestTimeoutMs = 400_000

const interrupted = new AbortController()
const runners = new Set<ChildProcess>()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.exitCode = signal === 'SIGINT' ? 130 : 143
    interrupted.abort(new Error('interrupted'))
    // Ctrl-C in a terminal reaches the runner by itself, and once is enough for it.
    if (signal !== 'SIGINT' || !process.stdin.isTTY)
      for (const runner of runners) runner.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal)
  })
}

try {
  const code = await main(process.argv.slice(2))
  process.exitCode ??= code
} catch (error) {
  if (!interrupted.signal.aborted) console.error(messageOf(error))
  process.exitCode ??= 1
}

async function main(args: string[]): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith('-'))
  const filters = args.filter((arg) => !arg.startsWith('-')).map((arg) => arg.replace(/^\.\//, ''))
  const files: string[] = []
  for await (const file of glob('test/**/*.test.ts', { cwd: root })) {
    if (filters.length === 0 || filters.some((filter) => file.includes(filter))) files.push(file)
  }
  files.sort()
  if (files.length === 0) {
    console.error(`no file under test/ matches ${filters.join(' ') || '**/*.test.ts'}`)
    return 2
  }
  const isOfCluster = (file: string) => file.endsWith('.cluster.test.ts')
  const clusters = files.filter(isOfCluster)
  const others = files.filter((file) => !isOfCluster(file))
  return withTestServers(interrupted.signal, async (servers, folder) => {
    // Hundreds of processes load the same modules.
    const env = { NODE_COMPILE_CACHE: join(folder, 'compile-cache'), ...servers }
    const printed = join(folder, 'cluster-tests.log')
    const later = others.length > 0 && clusters.length > 0 ? await open(printed, 'w') : null
    const codes = await Promise.all([
      // Two files at a time: the broker and the registry want some of the machine, and tests watch the clock.
      runTests(others, { concurrency: 2, timeoutMs: testTimeoutMs, flags, env, output: 'inherit' }),
      // Much of their time they wait for brokers.
      runTests(clusters, {
        ...{ concurrency: 1, timeoutMs: clusterTestTimeoutMs, flags },
        env: { ...env, TEST_CLUSTERS: 'one at a time' },
        output: later?.fd ?? 'inherit',
      }),
    ])
    if (later !== null) {
      await later.close()
      await pipeline(createReadStream(printed), process.stdout, { end: false })
    }
    return codes.find((code) => code !== 0) ?? 0
  })
}

interface RunOptions {
  concurrency: number
  timeoutMs: number
  flags: readonly string[]
  env: Record<string, string>
  /** Where it goes: a file's descriptor, or this process's own. */
  output: number | 'inherit'
}

/** Resolves to the exit code of Node's test runner; 0 without a file. */
function runTests(
  files: readonly string[],
  { concurrency, timeoutMs, flags, env, output }: RunOptions,
): Promise<number> {
  if (files.length === 0 || interrupted.signal.aborted) return Promise.resolve(0)
  const options = [
    '--test',
    '--test-reporter=spec',
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${timeoutMs}`,
  ]
  return new Promise((resolve, reject) => {
    const runner = spawn(process.execPath, [...options, ...flags, ...files], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', output, output],
    })
    runners.add(runner)
    runner.once('error', reject)
    runner.once('exit', (code) => {
      runners.delete(runner)
      resolve(code ?? 1)
    })
  })
}
