import { Readable } from 'node:stream'
import type { TestsStream } from 'node:test'

/** One event of Node's test runner, as reporters take it. */
interface TestEvent {
  type: string
  data: { message?: string; nesting?: number; file?: string; success?: boolean }
}

/** What a run says at its end, a line each: `tests 12`, `fail 0`, `duration_ms 123.4`. */
const totals = ['tests', 'suites', 'pass', 'fail', 'cancelled', 'skipped', 'todo', 'duration_ms']

/**
 * Runs of Node's test runner that go on side by side, as the events of one run, for one reporter: their totals come
 * once, at the end, added up. The duration is that of the longest.
 * @param onFailure called when a run has failed
 */
export function joinRuns(runs: readonly TestsStream[], onFailure: () => void): Readable {
  const sums = new Map(totals.map((name) => [name, 0]))
  const joined = new Readable({ objectMode: true, read() {} })
  let open = runs.length
  for (const run of runs) {
    run.on('data', (event: TestEvent) => {
      const [name, value] = event.data.message?.split(' ') ?? []
      const isTotal = event.type === 'test:diagnostic' && event.data.nesting === 0 && !event.data.file
      if (event.type === 'test:summary' && event.data.success === false) onFailure()
      if (!isTotal || !sums.has(name!)) joined.push(event)
      else if (name === 'duration_ms') sums.set(name, Math.max(sums.get(name)!, Number(value)))
      else sums.set(name!, sums.get(name!)! + Number(value))
    })
    run.on('error', (error) => joined.destroy(error))
    run.on('end', () => {
      if (--open > 0) return
      for (const [name, sum] of sums)
        joined.push({
          type: 'test:diagnostic',
          data: { nesting: 0, level: 'info', message: `${name} ${sum}` },
        })
      joined.push(null)
    })
  }
  return joined
}
