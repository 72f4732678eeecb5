// A reporter of Node's test runner: a line of JSON for each test that has passed or failed.
import type { TestEvent } from 'node:test/reporters'

/** What stands in a line. */
export interface TestedLine {
  name: string
  passed: boolean
  skipped: boolean
  /** It failed only because a test within it did. */
  ofSubtests: boolean
  /** It only holds others. */
  isSuite: boolean
  message: string
}

export default async function* eventLines(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of source) {
    if (type !== 'test:pass' && type !== 'test:fail') continue
    const error = type === 'test:fail' ? (data.details.error as Error & { failureType?: string }) : null
    const line: TestedLine = {
      name: data.name,
      passed: type === 'test:pass',
      skipped: data.skip !== undefined,
      ofSubtests: error?.failureType === 'subtestsFailed',
      isSuite: data.details.type === 'suite',
      message: String((error?.cause instanceof Error ? error.cause.message : error?.message) ?? ''),
    }
    yield `${JSON.stringify(line)}\n`
  }
}
