// What the audit says after crashes and moves of partitions, on a broker that takes short sessions.
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { settledAudit } from '../../support/audit.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startForwarderProcess } from '../../support/deployment/forwarder-process.ts'
import { NumberedCalls, countByPlace, placeOf } from '../../support/calls/numbered-calls.ts'
import { startReceiver, type Receiver } from '../../support/receivers.ts'

/** A third of the first requests fails, after 5 to 100 ms; whatever is sent again is taken. */
function failAThird(receiver: Receiver): void {
  const seen = new Set<string>()
  receiver.answer((request) => {
    const place = placeOf(request)
    const again = seen.has(place)
    seen.add(place)
    const [partition, offset] = place.split('/').map(Number) as [number, number]
    const delayMs = 5 + ((offset * 7_919 + partition * 104_729) % 95)
    return { status: !again && offset % 3 === 0 ? 503 : 200, delayMs }
  })
}

async function begin(t: TestContext) {
  const receiver = await startReceiver(t)
  failAThird(receiver)
  const deployment = await deploy(t, { SESSION_TIMEOUT: '1500ms' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  await calls.produce(600)
  return { receiver, deployment, calls }
}

test('with short sessions', async (t) => {
  await t.test(
    'after kill -9 under load everything is accounted for, and the duplicates of the crash are named',
    async (t) => {
      const { receiver, deployment, calls } = await begin(t)
      for (const count of [500, 1_200]) {
        const forwarder = await startForwarderProcess(t, deployment)
        await receiver.waitFor(count, 30_000)
        await forwarder.kill()
      }
      await startForwarderProcess(t, deployment)
      const report = await settledAudit(deployment)
      assert.deepEqual(report.faults, [])
      assert.ok(report.ok, JSON.stringify(report.destinations))
      const [crm] = report.destinations
      assert.equal(crm!.planned, 2_400)
      assert.equal(crm!.delivered, 2_400 + crm!.copies)
      assert.deepEqual([crm!.waiting, crm!.dead, crm!.skipped], [0, 0, 0])
      // Each copy in a tier is one that the receiver got once more.
      const counts = countByPlace(receiver.requests)
      for (const { deliveryId } of report.copies)
        assert.ok(counts.get(deliveryId!.slice(0, deliveryId!.lastIndexOf(':')))! >= 2, deliveryId!)
      t.diagnostic(`${report.copyCount} copies; ${report.read.tallies} tallies`)
      assert.equal(counts.size, calls.places.length)
    },
  )

  await t.test('when partitions move under load, each offset is tallied once', async (t) => {
    const { deployment, receiver } = await begin(t)
    const one = await startForwarderProcess(t, deployment)
    await receiver.waitFor(300, 60_000)
    const two = await startForwarderProcess(t, deployment)
    await receiver.waitFor(900, 60_000)
    one.terminate()
    await one.exited
    await receiver.waitFor(1_500, 60_000)
    // Frozen for longer than its session, it finds that another member owns its partitions.
    await startForwarderProcess(t, deployment)
    two.freeze()
    await receiver.waitFor(2_000, 60_000)
    two.thaw()
    const report = await settledAudit(deployment)
    assert.deepEqual(report.faults, [])
    assert.ok(report.ok, JSON.stringify(report.destinations))
    assert.equal(report.destinations[0]!.planned, 2_400)
  })
})
