// Runs the tests against one real Kafka and one real schema registry, started for this run in a temporary
// folder, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others. Files named *.cluster.test.ts start three
// brokers of their own, which takes two cores: they run after the others, one at a time, where they are asked for.
//
//   node scripts/test.ts                          all of test/** but those that start three brokers
//   node scripts/test.ts --all                    those too; so it is where CI=true
//   node scripts/test.ts core faults/kill         files whose path contains one of these
//   node scripts/test.ts core --test-name-pattern=retry    flags go to Node's test runner
import { glob } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../src/errors.ts'
import { runTestFiles, startsCluster } from './run-test-files.ts'
import { withTestServers } from './test-servers.ts'

const root = join(import.meta.dirname, '..')
/** For one test with all of its steps; a slow machine and a broker that restarts fit in. */
const timeoutMs = 480_000

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
  const flags = args.filter((arg) => arg.startsWith('-') && arg !== '--all')
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
    Object.assign(process.env, servers, { NODE_COMPILE_CACHE: join(folder, 'compile-cache') })
    const chosen = files.filter((file) => !leftOut.includes(file))
    const isGood = await runTestFiles(inOrder(chosen), { signal, flags, timeoutMs, cwd: root })
    if (leftOut.length > 0)
      console.error(
        `left out: ${leftOut.length} files that start three brokers. \`npm test -- --all\` runs them too, as CI does`,
      )
    return isGood ? 0 : 1
  })
}

/** What takes longest first, so that the end of the run is not spent waiting for one file. */
function inOrder(files: readonly string[]): string[] {
  const first = [/^test\/(commands|local)\//, /^test\/(pipeline|project)\//]
  const rank = (file: string): number => {
    const found = first.findIndex((pattern) => pattern.test(file))
    return found === -1 ? first.length : found
  }
  return files.toSorted((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1))
}
