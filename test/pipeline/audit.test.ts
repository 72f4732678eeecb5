import assert from 'node:assert/strict'
import { test } from 'node:test'
import { someCall } from '../support/calls.ts'
import { auditOf } from '../support/audit.ts'
import { deploy, until } from '../support/deployment.ts'
import { NumberedCalls, placeOf, unevenly } from '../support/numbered-calls.ts'
import { startReceiver } from '../support/receivers.ts'

test('a run with several destinations, failures and retries is accounted for to the last call, while it goes on too', async (t) => {
  const [good, shaky, bad] = await Promise.all([startReceiver(t), startReceiver(t), startReceiver(t)])
  good.answer(unevenly(50))
  const seen = new Set<string>()
  shaky.answer((request) => {
    const key = String(request.headers['idempotency-key'])
    const again = seen.has(key)
    seen.add(key)
    return { status: again || Number(placeOf(request).split('/')[1]) % 3 > 0 ? 200 : 503 }
  })
  bad.answer({ status: 404 })
  const deployment = await deploy(t)
  await deployment.destination({ id: 'good', urls: [good.url] })
  await deployment.destination({ id: 'shaky', urls: [shaky.url] })
  await deployment.destination({ id: 'bad', urls: [bad.url, `${bad.url}2`] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(150)
  await deployment.produce([
    someCall({ sourceId: 'nobody', messageId: 'x' }),
    someCall({ sourceId: 'shop', messageId: 'y', integrations: '{"All":false}' }),
  ])
  await deployment.forwarder()
  await good.waitFor(200)
  const midway = await auditOf(deployment)
  assert.deepEqual(midway.faults, [])
  assert.ok(midway.ok, JSON.stringify(midway.destinations))
  await deployment.drained()
  await shaky.waitFor(600 + 200)
  await until(async () => (await auditOf(deployment)).destinations.every(({ waiting }) => waiting === 0))
  const report = await auditOf(deployment)
  assert.deepEqual(report.faults, [])
  assert.ok(report.ok)
  const line = (id: string | null) => report.destinations.find(({ destinationId }) => destinationId === id)!
  const outcome = ({ planned, delivered, dead, skipped }: ReturnType<typeof line>) => ({
    planned,
    delivered,
    dead,
    skipped,
  })
  for (const id of ['good', 'shaky'])
    assert.deepEqual(outcome(line(id)), { planned: 600, delivered: 600, dead: 0, skipped: 0 })
  assert.deepEqual(outcome(line('bad')), { planned: 600, delivered: 0, dead: 600, skipped: 0 })
  assert.deepEqual(outcome(line(null)), { planned: 2, delivered: 0, dead: 1, skipped: 1 })
  assert.deepEqual(report.read, { ...report.read, calls: 602, retries: 200, deadLetters: 601 })
})
