// Runs the tests against one real Kafka and one real schema registry, started for this run in a temporary
// folder, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others. Files named *.cluster.test.ts start three
// brokers of their own, which takes two cores: they run after the others, one at a time, where they are asked for, and
// beside them files that mostly wait.
//
//   node scripts/test.ts                          all of test/** but those that start three brokers
//   node scripts/test.ts --all                    those too; so it is where CI=true
//   node scripts/test.ts core faults/kill         files whose path contains one of these
//   node scripts/test.ts --save-times             writes how long each process took, and what of the processors, into
//                                                 test/times.json
//   node scripts/test.ts core --test-name-pattern=retry    flags go to Node's test runner
import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../src/errors.ts'
import { runTestFiles } from './run-test-files.ts'
import { processesOf, startsCluster, TestSchedule, type TestTimes } from './test-schedule.ts'
import { withTestServers } from './test-servers.ts'

const root = join(import.meta.dirname, '..')
/** For one test with all of its steps; a slow machine and a broker that restarts fit in. */
const timeoutMs = 480_000

/** What the files took where that was measured. */
const timesFile = join(root, 'test/times.json')

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
    const times = JSON.parse(await readFile(timesFile, 'utf8')) as TestTimes
    const read = async (file: string) => [file, await readFile(join(root, file), 'utf8')] as const
    const processes = processesOf(new Map(await Promise.all(chosen.map(read))))
    const result = await runTestFiles(new TestSchedule(processes, times), {
      signal,
      flags,
      timeoutMs,
      cwd: root,
      cpuFile,
      folder,
    })
    const { isGood } = result
    if (args.includes('--save-times')) await saveTimes(times, result, new Set(chosen))
    if (leftOut.length > 0)
      console.error(
        `left out: ${leftOut.length} files that start three brokers. \`npm test -- --all\` runs them too, as CI does`,
      )
    return isGood ? 0 : 1
  })
}

/** Of files that have a process of their own. */
async function saveTimes(
  before: TestTimes,
  measured: Record<keyof TestTimes, ReadonlyMap<string, number>>,
  files: ReadonlySet<string>,
): Promise<void> {
  const merged = (what: keyof TestTimes) => {
    const own = [...measured[what]].filter(([name]) => files.has(name))
    const all = Object.entries({ ...before[what], ...Object.fromEntries(own) })
    return Object.fromEntries(all.toSorted(([a], [b]) => (a < b ? -1 : 1)))
  }
  const times: TestTimes = { seconds: merged('seconds'), cpu: merged('cpu') }
  await writeFile(timesFile, `${JSON.stringify(times, null, 2)}\n`)
}
