import { join } from 'node:path'
import { run } from 'node:test'

/** A test that waits for what never comes ends by then. */
const timeoutMs = 120_000

export interface TestResult {
  /** Names of the tests asked for, without those that only hold others. */
  passed: string[]
  failed: string[]
  /** What kept the file from running; a program that cannot even be loaded shows nothing. */
  broken: string | null
}

/** Runs the tests of one file whose name, or whose parents' names and own, contain `name`. */
export async function runTest(
  root: string,
  { file, name }: { file: string; name: string },
  signal: AbortSignal,
): Promise<TestResult> {
  const path = join(root, 'test', file)
  const result: TestResult = { passed: [], failed: [], broken: null }
  const stream = run({
    cwd: root,
    files: [path],
    isolation: 'process',
    testNamePatterns: [new RegExp(escaped(name))],
    timeout: timeoutMs,
    signal,
  })
  const isFile = (tested: string) => tested.endsWith(file)
  stream.on('test:pass', ({ name: tested, skip, details }) => {
    if (skip === undefined && details.type !== 'suite' && !isFile(tested)) result.passed.push(tested)
  })
  stream.on('test:fail', ({ name: tested, details: { error } }) => {
    if (isFile(tested)) result.broken = messageOf(error)
    else if ((error as Error & { failureType?: string }).failureType !== 'subtestsFailed')
      result.failed.push(tested)
  })
  // Read, or it would not run on.
  for await (const _event of stream);
  return result
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

const messageOf = (error: Error): string =>
  (error.cause instanceof Error ? error.cause.message : String(error.cause ?? error.message)).split('\n')[0]!
