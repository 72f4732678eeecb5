import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/deployment/rig.ts'
import type { FaultKind } from './kinds/fault-kinds.ts'
import type { Report } from './report.ts'

const main = join(import.meta.dirname, 'main.ts')
/** One of each thing that can happen to an owner, to brokers, to the way to them, and to what is sent. */
const kinds: readonly FaultKind[] = [
  'forwarder-killed',
  'forwarder-stopped',
  'collector-killed',
  'console-killed',
  'leader-killed',
  'brokers-rolled-fast',
  'broker-unreachable',
  'connections-cut',
  'secret-rotated',
  'tokens-away',
  'proxy-away',
]
/** It takes two minutes by itself; beside other tests, on a machine with one core for all, some more. */
const timeoutMs = 600_000
const flags = ['--seed', '1', '--once', '--rounds', '1', '--minutes', '6', '--rate', '60', '--patience', '6']

test('a short fault run accounts for every call', { timeout: timeoutMs }, async (t) => {
  const file = join(await temporaryFolder(t), 'report.json')
  // It is a program of its own, not a part of this run of tests.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const child = fork(main, [...flags, '--kinds', kinds.join(), '--report', file], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: [],
    env,
  })
  let text = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (text += String(chunk)))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.after(async () => {
    if (!child.connected) return
    // Without its parent it gives up, and takes with it what it started.
    t.diagnostic(text)
    child.disconnect()
    await exited
  })
  const code = await exited
  assert.equal(code, 0, text)
  const report = JSON.parse(await readFile(file, 'utf8')) as Report
  assert.equal(report.state, 'ended')
  assert.deepEqual(report.findings, {})
  assert.deepEqual(report.notInjected, [])
  assert.deepEqual(report.notChecked, [])
  assert.deepEqual(Object.keys(report.faults).sort(), [...kinds].sort())
  t.diagnostic(
    `${report.calls} calls, ${report.requests} requests, ${report.moves} moves of partitions, ${report.leaderMoves} of leaders`,
  )
})
