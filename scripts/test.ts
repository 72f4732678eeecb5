// Runs the tests against one real Kafka and one real schema registry, started for this run in a temporary
// folder, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others. Files named *.cluster.test.ts start three
// brokers of their own: they run after the others, one at a time.
//
//   node scripts/test.ts                          all of test/**
//   node scripts/test.ts core faults/kill         files whose path contains one of these
//   node scripts/test.ts core --test-name-pattern=retry    flags go to Node's test runner
import { spawn, type ChildProcess } from 'node:child_process'
import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../src/errors.ts'
import { withTestServers } from './test-servers.ts'

const root = join(import.meta.dirname, '..')
/** For one test; a slow machine and a broker that restarts fit in. */
const testTimeoutMs = 180_000

const interrupted = new AbortController()
let runner: ChildProcess | undefined
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.exitCode = signal === 'SIGINT' ? 130 : 143
    interrupted.abort(new Error('interrupted'))
    // Ctrl-C in a terminal reaches the runner by itself, and once is enough for it.
    if (signal !== 'SIGINT' || !process.stdin.isTTY) runner?.kill(signal === 'SIGHUP' ? 'SIGTERM' : signal)
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
  // Two files at a time: the broker and the registry want some of the machine, and tests watch the clock.
  const runs = [
    { files: files.filter((file) => !isOfCluster(file)), concurrency: 2, env: {} },
    { files: files.filter(isOfCluster), concurrency: 1, env: { TEST_CLUSTERS: 'one at a time' } },
  ]
  return withTestServers(interrupted.signal, async (servers, folder) => {
    // Hundreds of processes load the same modules.
    const cache = { NODE_COMPILE_CACHE: join(folder, 'compile-cache') }
    let code = 0
    for (const { files, concurrency, env } of runs) {
      if (files.length === 0 || interrupted.signal.aborted) continue
      code = (await runTests(files, concurrency, flags, { ...cache, ...servers, ...env })) || code
    }
    return code
  })
}

function runTests(
  files: string[],
  concurrency: number,
  flags: string[],
  env: Record<string, string>,
): Promise<number> {
  const options = [
    '--test',
    '--test-reporter=spec',
    `--test-concurrency=${concurrency}`,
    `--test-timeout=${testTimeoutMs}`,
  ]
  return new Promise((resolve, reject) => {
    runner = spawn(process.execPath, [...options, ...flags, ...files], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
    })
    runner.once('error', reject)
    runner.once('exit', (code) => resolve(code ?? 1))
    if (interrupted.signal.aborted) runner.kill('SIGTERM')
  })
}
