import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clientOf } from '../../support/calls/clients.ts'
import { startCollector, withSource } from '../../support/calls/collectors.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { startReceiver } from '../../support/receivers.ts'

test('at a sign-up the alias arrives before all calls of the new id, for each of 50 users', async (t) => {
  const deployment = await deploy(t)
  await withSource(deployment)
  const receiver = await startReceiver(t)
  await deployment.destination({ urls: [receiver.url] })
  const collector = await startCollector(deployment)
  await deployment.forwarder()
  // With the defaults of the client: batches of 20, so the calls of many users go in one request.
  const client = clientOf(t, collector)
  const users = Array.from({ length: 50 }, (_, index) => `user-${index}`)
  for (const userId of users) {
    const visitor = `visitor-of-${userId}`
    client.track({ anonymousId: visitor, event: 'Signed Up' })
    client.alias({ previousId: visitor, userId })
    client.identify({ userId, traits: { plan: 'pro' } })
    client.track({ userId, event: 'Order Completed' })
  }
  assert.deepEqual(await client.close(), { undelivered: [] })
  const requests = await receiver.waitFor(4 * users.length, 30_000)
  const bodies = requests.map((request) => request.json())
  for (const userId of users)
    assert.deepEqual(
      bodies.filter((body) => body.userId === userId || body['User ID'] === userId).map(({ type }) => type),
      ['alias', 'identify', 'track'],
      userId,
    )
})
