import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { maxRunCalls } from '../../../src/core/delivery/deferred-run.ts'
import { mostOwnAttempts } from '../../../src/core/pacing/own-attempts.ts'
import * as limits from '../../../src/core/pacing/limits.ts'
import { root, readPage } from '../../support/docs.ts'

/** The cells of the first table of a text whose first column is called `gate`. */
function gatesOf(text: string): Map<string, string[]> {
  const lines = text.split('\n').map((line) => line.replace(/^ \* /, ''))
  const start = lines.findIndex((line) => /^\| gate\b/.test(line))
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'))
  const rows = lines.slice(start + 2, end).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )
  return new Map(rows.map((cells) => [cells[0]!, cells]))
}

const source = gatesOf(readFileSync(join(root, 'src/core/pacing/limits.ts'), 'utf8'))
const page = gatesOf(readPage('docs/architecture.md'))

const count = (number: number): string => number.toLocaleString('en')
const mb = (bytes: number): string => `${bytes / 2 ** 20} MB`
const seconds = (ms: number): string => `${ms / 1_000} s`
const ms = (value: number): string => `${value} ms`
const percent = (part: number): string => `${part * 100} %`

/** What the page has to say in the row of each gate. */
const shown: Record<string, string[]> = {
  "partition's buffer": [
    `${count(limits.bufferedRecords.one)} records, ${mb(limits.bufferedBytes.one)}`,
    `${count(limits.bufferedRecords.all)} records, ${mb(limits.bufferedBytes.all)}`,
  ],
  "partition's span": [
    `${count(limits.maxSpan - limits.fetchMargin)} (${count(limits.maxSpan)} less one fetch)`,
    `at ${count(limits.maxSpan - 2 * limits.fetchMargin)}`,
  ],
  'due time': [`more than ${seconds(limits.restMs)}`],
  'memory budget': [
    `${limits.deliveriesPerSlot} × \`MAX_IN_FLIGHT\` (at least ${count(limits.minDeliveries)}), ${mb(limits.maxBytesInFlight)}`,
    `below ${percent(limits.wakeBelow)}`,
  ],
  "endpoint's share": [
    limits.shareOfFree === 0.5 ? 'half of what is free' : percent(limits.shareOfFree),
    `at least ${limits.placesPerSlot} × its limit`,
    `a queue whose first attempt has waited for ${seconds(limits.queueWaitMs)}`,
    `below ${percent(limits.wakeBelow)}`,
  ],
  'work at hand': [count(limits.plentyWaiting), `below ${count(limits.fewWaiting)}`],
  "planner's turn": [count(limits.recordsPerTurn)],
  slots: ['`MAX_IN_FLIGHT`'],
  'busy window': [
    count(limits.minBusyWindow),
    limits.busyWindowGrowth === 0.25 ? 'by a quarter' : percent(limits.busyWindowGrowth),
  ],
  'concurrency limit': [`${limits.startInFlightPerEndpoint} at first`],
  'destination limit': [`${ms(limits.limitBurstMs)} of the rate at once`],
  'order per key': [`${seconds(limits.maxLaneWorkMs)} of work waits, after ${seconds(limits.laneGraceMs)}`],
  batch: [`${limits.batchesScanned} batches`],
  'parked calls': [count(limits.maxParked), count(limits.maxParkedSpan), mb(limits.maxParkedBytes)],
  runs: [count(maxRunCalls), ms(limits.lingerMs)],
  'attempts of their own': [`1 to ${mostOwnAttempts}`],
  deferrals: [count(limits.deferredAtOnce)],
  openings: [
    count(limits.openedAtOnce),
    `${limits.openingPerOrigin} opening at an origin`,
    `the rest after ${ms(limits.openingWait.ms)} or ${limits.openingWait.ofTimeLimit === 0.1 ? 'a tenth of the time limit' : ''}`,
  ],
  'blocking others': [seconds(limits.headOfLineLimitMs), `below half for ${seconds(limits.queueWaitMs)}`],
  'retry budget': [
    limits.budgetWindowMs === 600_000 ? 'in ten minutes' : ms(limits.budgetWindowMs),
    `${limits.defaultTrickle.perSecond} a second`,
  ],
  publishing: [
    `${count(limits.maxBatchRecords)} records, ${limits.maxBatchBytes / 1_024} KB`,
    `every ${ms(limits.lingerMs)}`,
  ],
  commits: [
    `every ${ms(limits.commitIntervalMs)}`,
    `${limits.maxTicksPassed} times as long while commits fail`,
  ],
}

test('docs/architecture.md lists the gates of limits.ts, each with the values in the code', () => {
  const missing: string[] = []
  for (const [gate, parts] of Object.entries(shown)) {
    const row = page.get(gate)?.join(' | ') ?? ''
    for (const part of parts) if (!row.includes(part)) missing.push(`${gate}: ${part}`)
  }
  assert.deepEqual(missing, [])
  assert.deepEqual([...source.keys()], Object.keys(shown))
})

test('every constant of limits.ts is in its table', () => {
  const named = [...source.values()].flat().join(' ')
  assert.deepEqual(
    Object.keys(limits).filter((name) => !named.includes(`\`${name}\``)),
    [],
  )
})
