// Runs the tests against one real Kafka and one real schema registry, started for this run in a temporary
// folder, unless TEST_KAFKA_BROKERS and TEST_REGISTRY_URL name others.
//
//   node scripts/test.ts                          all of test/**
//   node scripts/test.ts core faults/kill         files whose path contains one of these
//   node scripts/test.ts core --test-name-pattern=retry    flags go to Node's test runner
import { spawn, type ChildProcess } from 'node:child_process'
import { glob, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../src/errors.ts'
import { startLocalKafka } from '../src/local/kafka.ts'
import { ensureLocalParts } from '../src/local/parts.ts'
import { startLocalRegistry } from '../src/local/registry.ts'
import { isAlive } from '../src/local/state-folder.ts'

const root = join(import.meta.dirname, '..')
const folderPrefix = 'postrider-test-'
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
  const { TEST_KAFKA_BROKERS, TEST_REGISTRY_URL } = process.env
  if (TEST_KAFKA_BROKERS && TEST_REGISTRY_URL) return runTests(files, flags, {})
  return withServers((env) => runTests(files, flags, env))
}

/** Starts the servers, runs, and leaves neither process nor file behind. */
async function withServers(run: (env: Record<string, string>) => Promise<number>): Promise<number> {
  await removeLeftovers()
  const { signal } = interrupted
  const folder = await mkdtemp(join(tmpdir(), `${folderPrefix}${process.pid}-`))
  const started: { kill(): Promise<void> }[] = []
  const keep = <T extends { kill(): Promise<void> }>(server: T): T => {
    started.push(server)
    return server
  }
  try {
    const begin = performance.now()
    const parts = await ensureLocalParts({ onProgress: showProgress, signal })
    const starting = [
      startLocalKafka({ parts, dataDir: join(folder, 'kafka'), signal }).then(keep),
      startLocalRegistry({ parts, dataDir: join(folder, 'registry'), signal }).then(keep),
    ] as const
    await Promise.allSettled(starting)
    const [kafka, registry] = await Promise.all(starting)
    const seconds = ((performance.now() - begin) / 1000).toFixed(1)
    showProgress(`Kafka ${kafka.brokers.join()} and registry ${registry.url} ready after ${seconds} s\n`)
    return await run({ TEST_KAFKA_BROKERS: kafka.brokers.join(), TEST_REGISTRY_URL: registry.url })
  } finally {
    // What they hold is thrown away: no need to let them close their files.
    await Promise.all(started.map((server) => server.kill()))
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function runTests(files: string[], flags: string[], env: Record<string, string>): Promise<number> {
  // Two files at a time: the broker and the registry want some of the machine, and tests watch the clock.
  const options = [
    '--test',
    '--test-reporter=spec',
    '--test-concurrency=2',
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

/** One line, written over and over in a terminal; elsewhere only what is final. */
function showProgress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
  else if (text.endsWith('\n')) process.stderr.write(text)
}

/** Removes the folders of runs that were killed. */
async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const pid = name.startsWith(folderPrefix)
      ? /^(\d+)-/.exec(name.slice(folderPrefix.length))?.[1]
      : undefined
    if (!pid || isAlive(Number(pid))) continue
    // A disk that such a run has mounted there, say, is no reason not to test.
    await rm(join(tmpdir(), name), { recursive: true, force: true }).catch((error: unknown) =>
      console.error(`left as it is: ${messageOf(error)}`),
    )
  }
}
