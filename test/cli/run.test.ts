import assert from 'node:assert/strict'
import { test } from 'node:test'
import { partMakers } from '../../src/cli/run-parts.ts'
import { makeCheckout } from '../support/deployment/checkout.ts'
import { deploy } from '../support/deployment/deployment.ts'

test('run takes parts by name, and its error for an unknown name lists them', async (t) => {
  const { start } = await makeCheckout(t)
  const cases: [args: string[], line: string][] = [
    [
      ['run', 'forwarder', 'colector'],
      `postrider: there is no part "colector"; there is: ${Object.keys(partMakers).join(', ')}\n`,
    ],
    [
      ['run', 'forwarder', 'forwarder'],
      'postrider: forwarder is named twice; for more of one part, start more processes (`postrider forwarder`)\n',
    ],
    [['run'], "postrider: missing required argument 'part'. See `postrider run --help`\n"],
  ]
  for (const [args, line] of cases) {
    const run = start(args)
    assert.deepEqual([await run.ended, run.written()], [2, line])
  }
})

test('run forwarder takes work until SIGTERM', async (t) => {
  const deployment = await deploy(t)
  const { start } = await makeCheckout(t)
  const run = start(['run', 'forwarder'], deployment.env)
  await run.writes('metrics at http://localhost:')
  const port = /metrics at http:\/\/localhost:(\d+)/.exec(run.written())![1]
  const readiness = await fetch(`http://127.0.0.1:${port}/readyz`)
  assert.ok('forwarder' in ((await readiness.json()) as { checks: object }).checks)
  const metrics = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  assert.match(metrics, /^postrider_build_info\{version="\d+\.\d+\.\d+[^"]*"/m)
  run.signal('SIGTERM')
  assert.equal(await run.ended, 0, run.written())
  assert.match(run.written(), /"msg":"stopped"/)
})
