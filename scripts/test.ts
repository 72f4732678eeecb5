// Runs the tests against one real Kafka and one real schema registry, started for this run in a temporary
// folder, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others. Files named *.cluster.test.ts start three
// brokers of their own, which takes two cores: they run after the others, one at a time, where they are asked for.
//
//   node scripts/test.ts                          all of test/** but those that start three brokers
//   node scripts/test.ts --all                    those too; so it is where CI=true
//   node scripts/test.ts core faults/kill         files whose path contains one of these
//   node scripts/test.ts --save-times             writes how long each file took into test/times.json
//   node scripts/test.ts core --test-name-pattern=retry    flags go to Node's test runner
import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../src/errors.ts'
import { runTestFiles, startsCluster } from './run-test-files.ts'
import { withTestServers } from './test-servers.ts'

const root = join(import.meta.dirname, '..')
/** For one test with all of its steps; a slow machine and a broker that restarts fit in. */
const timeoutMs = 480_000

/** How long each file took, in seconds, where it was measured. */
const timesFile = join(root, 'test/times.json')
/** Of a file that is new. */
const assumedSeconds = 10

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.exitCode = signal === 'SIGINT' ? 130 : 143
    interrupted.abort(new Error('interrupted'))
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
  const flags = args.filter((arg) => arg.startsWith('-') && !['--all', '--save-times'].includes(arg))
  const filters = args.filter((arg) => !arg.startsWith('-')).map((arg) => arg.replace(/^\.\//, ''))
  const files: string[] = []
  for await (const file of glob('test/**/*.test.ts', { cwd: root })) {
    if (filters.length === 0 || filters.some((filter) => file.includes(filter))) files.push(file)
  }
  const leftOut =
    args.includes('--all') || filters.length > 0 || process.env.CI === 'true'
      ? []
      : files.filter(startsCluster)
  if (files.length === 0) {
    console.error(`no file under test/ matches ${filters.join(' ') || '**/*.test.ts'}`)
    return 2
  }
  const { signal } = interrupted
  return withTestServers(signal, async (servers, folder) => {
    // Hundreds of processes load the same modules.
    const cpuFile = process.env.TEST_CPU_FILE ?? join(folder, 'cpu')
    const forAll = { NODE_COMPILE_CACHE: join(folder, 'compile-cache'), TEST_CPU_FILE: cpuFile }
    Object.assign(process.env, servers, forAll)
    const chosen = files.filter((file) => !leftOut.includes(file))
    const times = JSON.parse(await readFile(timesFile, 'utf8').catch(() => '{}')) as Record<string, number>
    const { isGood, seconds } = await runTestFiles(inOrder(chosen, times), {
      signal,
      flags,
      timeoutMs,
      cwd: root,
      cpuFile,
    })
    if (args.includes('--save-times')) await saveTimes(times, seconds)
    if (leftOut.length > 0)
      console.error(
        `left out: ${leftOut.length} files that start three brokers. \`npm test -- --all\` runs them too, as CI does`,
      )
    return isGood ? 0 : 1
  })
}

/** What takes longest first, so that the end of the run is not spent waiting for one file. */
function inOrder(files: readonly string[], times: Readonly<Record<string, number>>): string[] {
  const seconds = (file: string): number => times[file] ?? assumedSeconds
  return files.toSorted((a, b) => seconds(b) - seconds(a) || (a < b ? -1 : 1))
}

async function saveTimes(
  before: Readonly<Record<string, number>>,
  measured: ReadonlyMap<string, number>,
): Promise<void> {
  const all = Object.entries({ ...before, ...Object.fromEntries(measured) })
  const sorted = all.toSorted(([a], [b]) => (a < b ? -1 : 1))
  await writeFile(timesFile, `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`)
}
