import { spawn } from 'node:child_process'
import type { ChildProcess, ChildProcessWithoutNullStreams } from 'node:child_process'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Admin, Kafka } from 'kafkajs'
import { createKafka } from '../../../src/adapters/kafka/patched-client.ts'
import { readRange } from '../../../src/adapters/kafka/read/read-range.ts'
import { fetchRange } from '../../../src/adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../../../src/adapters/kafka/read/topic-record.ts'
import { brokers, registryUrl, uniquePrefix } from './rig.ts'
import { bareEnv } from './bare-env.ts'
import { ownFolder } from './own-folder.ts'
import { runHere, type CommandResult } from './program-here.ts'
import { silentLog as log } from '../silent-log.ts'

const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

export interface RunningCommand {
  process: ChildProcessWithoutNullStreams
  ended: Promise<CommandResult>
}

const running = new Set<ChildProcess>()
const killAll = () => {
  for (const child of running) child.kill('SIGKILL')
}
process.on('exit', killAll)
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    killAll()
    process.kill(process.pid, signal)
  })

/** Ends a process with this one: what is to run after a test does not run when the run of tests is broken off. */
export function endWithThisProcess(child: ChildProcess): void {
  running.add(child)
  child.once('exit', () => running.delete(child))
}

/**
 * Starts a command as users do, in a folder that is not the project's: for what is killed, gets a signal or goes on while
 * the test does something else. It is killed at the end of the test.
 */
export function startProgram(
  t: TestContext,
  env: Record<string, string | undefined>,
  args: readonly string[],
): RunningCommand {
  const child = spawn(process.execPath, [main, ...args], { cwd: ownFolder(), env })
  t.after(() => child.kill('SIGKILL'))
  endWithThisProcess(child)
  let [stdout, stderr] = ['', '']
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  // A command that fails early does not read on.
  child.stdin.on('error', () => {})
  const ended = new Promise<CommandResult>((resolve) =>
    child.on('close', (status) => resolve({ status, stdout, stderr })),
  )
  return { process: child, ended }
}

/** Commands as users run them, on topics of this test's own. */
export interface CommandRig {
  prefix: string
  kafka: Kafka
  admin: Admin
  start(...args: string[]): RunningCommand
  /** Runs to the end in this process, with this on stdin. */
  run(input: string, ...args: string[]): Promise<CommandResult>
  /** All records of a topic, by its name without the prefix. */
  records(topic: string): Promise<TopicRecord[]>
  /** How many records a topic was given, by its name without the prefix. */
  written(topic: string): Promise<number>
}

export async function commandRig(t: TestContext, env: Record<string, string> = {}): Promise<CommandRig> {
  const prefix = uniquePrefix()
  const environment: Record<string, string> = {
    KAFKA_BROKERS: brokers().join(','),
    SCHEMA_REGISTRY_URL: registryUrl(),
    TOPIC_PREFIX: prefix,
    RETRY_TIERS: '10s',
    ...env,
  }
  const kafka = createKafka(
    { kafka: { brokers: environment.KAFKA_BROKERS!.split(','), ssl: false, sasl: null } },
    log,
  )
  const admin = kafka.admin()
  await admin.connect()
  t.after(async () => {
    const topics = await admin.listTopics().catch(() => [])
    const own = topics.filter((topic) => topic.startsWith(prefix))
    if (own.length > 0) await admin.deleteTopics({ topics: own })
    await admin.disconnect()
  })
  return {
    prefix,
    kafka,
    admin,
    start: (...args) => startProgram(t, { ...bareEnv, ...environment }, args),
    run: (input, ...args) => runHere(t, args, { env: environment, input }),
    async records(topic) {
      const records: TopicRecord[] = []
      const range = readRange({ kafka, topic: prefix + topic, log })
      for await (const record of range) records.push(record)
      return records
    },
    async written(topic) {
      const ranges = await fetchRange(kafka, prefix + topic)
      return ranges.reduce((sum, { high }) => sum + high, 0)
    },
  }
}
