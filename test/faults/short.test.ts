import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/rig.ts'
import type { Report } from './report.ts'

const main = join(import.meta.dirname, 'main.ts')
const kinds = [
  'forwarder-killed',
  'forwarder-stopped',
  'forwarder-frozen',
  'broker-restarted',
  'connections-cut',
]

// What takes two minutes by itself may take some more beside other tests.
test('the short form of the fault suite: every call is accounted for', { timeout: 600_000 }, async (t) => {
  const folder = await temporaryFolder(t)
  const file = join(folder, 'report.json')
  const flags = ['--seed', '1', '--once', '--minutes', '8', '--rate', '60', '--patience', '4']
  const child = fork(main, [...flags, '--kinds', kinds.join(), '--report', file], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let text = ''
  for (const stream of [child.stdout!, child.stderr!]) stream.on('data', (chunk) => (text += String(chunk)))
  const exited = new Promise<number | null>((resolve) => child.once('close', resolve))
  t.after(async () => {
    // Without its parent it gives up, and takes with it what it started.
    if (child.connected) child.disconnect()
    await exited
  })
  const code = await exited
  assert.equal(code, 0, text)
  const report = JSON.parse(await readFile(file, 'utf8')) as Report
  assert.equal(report.state, 'ended')
  assert.deepEqual(report.findings, {})
  assert.deepEqual(report.faults, Object.fromEntries(kinds.map((kind) => [kind, 1])))
  t.diagnostic(`${report.calls} calls, ${report.requests} requests, ${report.moves} moves of partitions`)
})
