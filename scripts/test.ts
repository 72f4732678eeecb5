// Runs the tests against one real Kafka and one real schema registry, started for this run in a temporary
// folder, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others. Files named *.cluster.test.ts start three
// brokers of their own: one at a time, beside the others.
//
//   node scripts/test.ts                                   all of test/**
//   node scripts/test.ts core faults/kill                  files whose path contains one of these
//   node scripts/test.ts core --test-name-pattern=retry    only tests whose name matches
import { glob } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { parseArgs } from 'node:util'
import { messageOf } from '../src/errors.ts'
import { joinRuns } from './join-runs.ts'
import { withTestServers } from './test-servers.ts'

const root = join(import.meta.dirname, '..')
/** For one test; a slow machine and a broker that restarts fit in. */
const testTimeoutMs = 180_000
/** Most tests wait for processes and brokers most of the time. */
const filesAtOnce = 2 * availableParallelism()
/** Those that take long go first: what begins last should be short. */
const slowFirst = ['test/commands/', 'test/pipeline/', 'test/local/', 'test/collector/', 'test/project/']

const interrupted = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    process.exitCode = signal === 'SIGINT' ? 130 : 143
    interrupted.abort(new Error('interrupted'))
  })
}

try {
  const code = await main()
  process.exitCode ??= code
} catch (error) {
  if (!interrupted.signal.aborted) console.error(messageOf(error))
  process.exitCode ??= 1
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { 'test-name-pattern': { type: 'string', multiple: true } },
  })
  const files = await filesThatMatch(positionals.map((filter) => filter.replace(/^\.\//, '')))
  if (files.length === 0) {
    console.error(`no file under test/ matches ${positionals.join(' ') || '**/*.test.ts'}`)
    return 2
  }
  const isOfCluster = (file: string) => file.endsWith('.cluster.test.ts')
  const groups = [
    { files: files.filter((file) => !isOfCluster(file)), concurrency: filesAtOnce },
    { files: files.filter(isOfCluster), concurrency: 1 },
  ]
  return withTestServers(interrupted.signal, async (servers, folder) => {
    // Hundreds of processes load the same modules.
    const env = { NODE_COMPILE_CACHE: join(folder, 'compile-cache'), TEST_CLUSTERS: 'one at a time' }
    Object.assign(process.env, servers, env)
    let code = 0
    const runs = groups
      .filter((group) => group.files.length > 0)
      .map((group) =>
        run({
          ...group,
          timeout: testTimeoutMs,
          testNamePatterns: values['test-name-pattern'] ?? [],
          signal: interrupted.signal,
        }),
      )
    const report = joinRuns(runs, () => (code = 1)).compose(new spec())
    for await (const text of report) process.stdout.write(text as string)
    return code
  })
}

async function filesThatMatch(filters: readonly string[]): Promise<string[]> {
  const files: string[] = []
  for await (const file of glob('test/**/*.test.ts', { cwd: root })) {
    if (filters.length === 0 || filters.some((filter) => file.includes(filter))) files.push(file)
  }
  const placeOf = (file: string) => {
    const place = slowFirst.findIndex((folder) => file.startsWith(folder))
    return place === -1 ? slowFirst.length : place
  }
  files.sort((a, b) => placeOf(a) - placeOf(b) || (a < b ? -1 : 1))
  return files.map((file) => join(root, file))
}
