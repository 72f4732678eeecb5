import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newSecret } from '../../../src/operators/settings/secrets.ts'
import { someCall } from '../../support/calls/calls.ts'
import { connect, counted, dispositions, sampleOf } from '../../support/calls/samples.ts'
import {
  deploy,
  logged,
  type Deployment,
  type RunningForwarder,
} from '../../support/deployment/deployment.ts'
import { oidcSecret, startOidcProvider, type OidcProvider } from '../../support/oidc.ts'
import { startReceiver } from '../../support/receivers.ts'
import { until } from '../../support/until.ts'

/** Once the forwarder knows. */
async function logIn(
  deployment: Deployment,
  forwarder: RunningForwarder,
  id: string,
  { login: { tokenUrl, clientId, clientSecret, scope } }: OidcProvider,
): Promise<void> {
  await deployment.settings.execute({
    type: 'update_destination',
    id,
    login: { oauthClientSecret: newSecret(clientSecret, deployment.secrets) },
    options: { oauthTokenUrl: tokenUrl, oauthClientId: clientId, oauthScope: scope },
  })
  await connect(deployment, forwarder, { id: 'marker', urls: ['http://127.0.0.1:1/'] })
}

const endpointOf = (forwarder: RunningForwarder, id: string) =>
  [...forwarder.report.endpoints!()].find(({ destinationId }) => destinationId === id)!

test('while the token endpoint is away calls are put off and charged to nobody, and are delivered once it is back', async (t) => {
  const provider = await startOidcProvider(t)
  await provider.stop()
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms' })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  await logIn(deployment, forwarder, 'shop', provider)
  // More in a row than open a breaker.
  const calls = Array.from({ length: 30 }, (_, index) =>
    someCall({ sourceId: 'shop', messageId: `m-${index}`, userId: `user-${index}` }),
  )
  await deployment.produce(calls)
  const withoutToken = () => sampleOf(forwarder, 'postrider_destination_without_token{destination="shop"}')
  await until(
    () => sampleOf(forwarder, dispositions('shop', 'deferred')) > calls.length,
    20_000,
    'put off again',
  )
  assert.ok(
    sampleOf(forwarder, 'postrider_deferrals_total{destination="shop",reason="no_token"}') >= calls.length,
  )
  assert.equal(withoutToken(), 1)
  assert.equal(sampleOf(forwarder, 'postrider_endpoint_breaker_open{destination="shop",url_id="u1"}'), 0)
  const { breaker, downSince, lastFailure } = endpointOf(forwarder, 'shop')
  assert.equal(breaker, 'closed')
  assert.notEqual(downSince, null, 'the console names it')
  assert.equal(lastFailure!.outcome, 'no_token')
  assert.match(lastFailure!.detail!, /gives no token: .*ECONNREFUSED/)
  assert.match(forwarder.warning()!, /the login fails: destination "shop": http/)
  assert.equal(forwarder.problem(), null)
  assert.equal(receiver.requests.length, 0)

  await provider.start()
  await counted(forwarder, dispositions('shop', 'delivered'), calls.length)
  const got = receiver.requests.map(({ headers }) => headers.authorization)
  assert.deepEqual(new Set(got), new Set([`Bearer ${provider.issued[0]}`]))
  assert.deepEqual([got.length, provider.asked()], [calls.length, 1])
  await logged(forwarder, 'the login works again')
  assert.equal(forwarder.log.filter(({ msg }) => msg.startsWith('the login fails')).length, 1)
  assert.equal(withoutToken(), 0)
  assert.equal(endpointOf(forwarder, 'shop').downSince, null)

  const records = await Promise.all(
    [deployment.topics.deliveries, deployment.topics.settings].map((topic) => deployment.read(topic)),
  )
  const values = records.flat().map(({ value }) => (value ? Buffer.from(value).toString('latin1') : ''))
  const shown = [JSON.stringify(forwarder.log), ...forwarder.counts.expose(), ...values].join('\n')
  for (const secret of [oidcSecret, provider.issued[0]!]) assert.ok(!shown.includes(secret))
})

test('a delivery for which there was no token until its window ended is a dead letter no_token', async (t) => {
  const provider = await startOidcProvider(t)
  await provider.stop()
  const receiver = await startReceiver(t)
  const deployment = await deploy(t, { RETRY_TIERS: '300ms', RETRY_WINDOW: '2s' })
  const forwarder = await deployment.forwarder()
  await connect(deployment, forwarder, { id: 'shop', urls: [receiver.url] })
  await logIn(deployment, forwarder, 'shop', provider)
  await deployment.produce([someCall({ sourceId: 'shop' })])
  await counted(forwarder, dispositions('shop', 'dead_lettered'), 1)
  const [{ reason, delivery }] = (await deployment.deadLetters()) as [
    Awaited<ReturnType<Deployment['deadLetters']>>[0],
  ]
  assert.equal(reason, 'no_token')
  assert.equal(delivery!.outcomes[0]!.kind, 'no_token')
  assert.equal(delivery!.attempts, 0)
  assert.equal(receiver.requests.length, 0)
})
