import { test } from 'node:test'
import { deploy } from '../../support/deployment/deployment.ts'
import { NumberedCalls, assertEachOnce } from '../../support/calls/numbered-calls.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'

test('a forwarder without a partition stands by, and takes over when another one leaves', async (t) => {
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { PARTITIONS_CALLS: '1' })
  await deployment.destination({ urls: [receiver.url] })
  const calls = new NumberedCalls(deployment)
  const first = await deployment.forwarder()
  await calls.produce(10)
  await deployment.drained(60_000)
  // Ready, for it takes whatever it is given.
  const second = await deployment.forwarder()
  await calls.produce(10)
  await deployment.drained(60_000)
  await first.stop()
  await calls.produce(10)
  await deployment.drained(60_000)
  // It may have the calls' partition before it is a member of the group of retries.
  await until(() => second.problem() === null, 10_000, 'a forwarder that says that all is well')
  await assertEachOnce(deployment, calls.places, receiver)
})
