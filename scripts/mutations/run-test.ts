import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { TestedLine } from './event-lines.ts'
import type { Mutation } from './mutation.ts'

/** A test that waits for what never comes ends by then. */
const timeoutMs = 180_000
const reporter = join(import.meta.dirname, 'event-lines.ts')

export interface TestResult {
  /** Names of the tests asked for, without those that only hold others. */
  passed: string[]
  failed: string[]
  /** What kept the file from running; a program that cannot even be loaded shows nothing. */
  broken: string | null
}

/** Runs the tests of one file whose name contains `name`. Subtests run with the test that they are within, or not. */
export async function runTest(
  root: string,
  { file, name, within }: Mutation['test'],
  signal: AbortSignal,
): Promise<TestResult> {
  const options = [
    '--test',
    `--test-reporter=${reporter}`,
    `--test-timeout=${timeoutMs}`,
    // A mechanism that is switched off may leave open what would keep the process.
    '--test-force-exit',
    `--test-name-pattern=${escaped(within ?? name)}`,
  ]
  signal.throwIfAborted()
  const runner = spawn(process.execPath, [...options, join(root, 'test', file)], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const stop = () => void runner.kill('SIGTERM')
  signal.addEventListener('abort', stop)
  const result: TestResult = { passed: [], failed: [], broken: null }
  for await (const text of createInterface({ input: runner.stdout })) {
    const line = JSON.parse(text) as TestedLine
    if (line.name.endsWith(file)) {
      if (!line.passed) result.broken = line.message.split('\n')[0]!
      continue
    }
    if (within !== undefined && !line.name.includes(name)) continue
    if (!line.passed && !line.ofSubtests) result.failed.push(line.name)
    else if (line.passed && !line.skipped && !line.isSuite) result.passed.push(line.name)
  }
  signal.removeEventListener('abort', stop)
  signal.throwIfAborted()
  return result
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
