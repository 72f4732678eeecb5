// A destination that cannot be set up does not affect the others; and the names that a header may have.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { toFields } from '../../../src/adapters/folded-log/settings-record.ts'
import { createSecrets } from '../../../src/adapters/secrets.ts'
import { newSecret } from '../../../src/operators/settings/secrets.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy, logged, type Deployment } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'
import { connect, counted, dispositions, sampleOf } from '../../support/calls/samples.ts'

const notSetUp = (destination: string) => `postrider_destination_not_set_up{destination="${destination}"}`

/** As a command in a shell with another SECRETS_KEY would. */
async function destinationWithStrangeSecret(
  { settings }: Deployment,
  id: string,
  url: string,
): Promise<void> {
  const strange = createSecrets([randomBytes(32)])
  await settings.execute({ type: 'create_source', id, name: id, writeKey: `key-of-${id}`, enabled: true })
  await settings.execute({
    type: 'create_destination',
    id,
    name: id,
    sourceIds: [id],
    urls: [url],
    headers: [],
    sharedSecret: newSecret('another', strange),
    enabled: true,
  })
}

test('a destination with a secret that cannot be opened holds only its own calls, also at the start, and gets them once it can', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms' })
  const first = await deployment.forwarder()
  const [good, typo] = await Promise.all([
    startReceiver(t, { secret: 's3cret' }),
    startReceiver(t, { secret: 'right' }),
  ])
  await connect(deployment, first, { id: 'good', urls: [good.url] })
  await destinationWithStrangeSecret(deployment, 'typo', typo.url)
  await until(() => sampleOf(first, notSetUp('typo')) === 1)
  const line = await logged(first, 'cannot be set up')
  assert.equal(line.destination, 'typo')
  assert.match(String(line.reason), /sealed with key [0-9a-f]+, which is not in SECRETS_KEY/)
  assert.match(first.warning()!, /destination "typo": a secret in the settings/)
  assert.equal(first.problem(), null)

  await deployment.produce([
    someCall({ sourceId: 'typo', messageId: 't-1' }),
    someCall({ sourceId: 'good', messageId: 'g-1' }),
  ])
  await good.waitFor(1)
  await until(() => sampleOf(first, dispositions('typo', 'deferred')) >= 1)
  const series = 'postrider_deferrals_total{destination="typo",reason="not_set_up"}'
  assert.ok(sampleOf(first, series) >= 1)
  await first.stop()

  // At each start it is the same.
  const second = await deployment.forwarder()
  assert.equal(sampleOf(second, notSetUp('typo')), 1)
  await deployment.produce([
    someCall({ sourceId: 'typo', messageId: 't-2' }),
    someCall({ sourceId: 'good', messageId: 'g-2' }),
  ])
  await good.waitFor(2)
  await until(() => sampleOf(second, dispositions('typo', 'deferred')) >= 1)
  assert.equal(typo.requests.length, 0)

  const { settings, secrets } = deployment
  await settings.execute({
    type: 'update_destination',
    id: 'typo',
    sharedSecret: newSecret('right', secrets),
  })
  const requests = await typo.waitFor(2, 20_000)
  assert.deepEqual(requests.map((request) => request.json().messageId).sort(), ['t-1', 't-2'])
  assert.ok(requests.every(({ signature }) => signature === 'valid'))
  assert.equal(sampleOf(second, notSetUp('typo')), 0)
  assert.equal(second.warning(), null)
  await counted(second, dispositions('typo', 'delivered'), 2)
})

test('an update that cannot be set up stops deliveries to its destination, and the next update resumes them', async (t) => {
  const deployment = await deploy(t, { RETRY_TIERS: '300ms,600ms' })
  const forwarder = await deployment.forwarder()
  const receiver = await startReceiver(t)
  await connect(deployment, forwarder, { id: 'crm', urls: [receiver.url], secret: null })
  const { settings } = deployment
  const strange = createSecrets([randomBytes(32)])
  await settings.execute({
    type: 'update_destination',
    id: 'crm',
    headers: [{ urlNumber: 1, name: 'X-Key', value: newSecret('abc', strange) }],
  })
  await until(() => sampleOf(forwarder, notSetUp('crm')) === 1)
  await deployment.produce([someCall({ sourceId: 'crm', messageId: 'm-1' })])
  await until(() => sampleOf(forwarder, dispositions('crm', 'deferred')) >= 1)
  assert.equal(receiver.requests.length, 0, 'nothing goes out without its header')
  const { secrets } = deployment
  await settings.execute({
    type: 'update_destination',
    id: 'crm',
    // Names that mean something to JavaScript are names all the same.
    headers: ['X-Key', 'toString', 'constructor'].map((name) => ({
      urlNumber: 1,
      name,
      value: newSecret(`of ${name}`, secrets),
    })),
  })
  const [request] = await receiver.waitFor(1, 20_000)
  const { rawHeaders } = request!
  for (const name of ['X-Key', 'toString', 'constructor'])
    assert.equal(rawHeaders[rawHeaders.indexOf(name) + 1], `of ${name}`)
})

test('a condition in the settings that this version refuses holds only its destination, also at the start', async (t) => {
  const deployment = await deploy(t)
  const { codecs, producer, settings, topics } = deployment
  const [held, well] = await Promise.all([startReceiver(t), startReceiver(t)])
  await deployment.destination({ id: 'crm', source: 'crm', urls: [held.url] })
  // As an earlier version would have written it.
  const event = {
    type: 'destination_updated',
    id: 'crm',
    options: { where: 'call.userId in [b"u"]' },
  } as const
  const { version } = settings.state
  const value = codecs.settings.encode(
    toFields({ commandId: 'earlier', expectedVersion: version, at: 1, event }),
  )
  await producer.send({ topic: topics.settings, acks: -1, messages: [{ key: 'crm', value, partition: 0 }] })
  await settings.catchUp()
  await deployment.destination({ id: 'other', source: 'other', urls: [well.url] })

  const forwarder = await deployment.forwarder()
  assert.equal(sampleOf(forwarder, notSetUp('crm')), 1)
  assert.match(forwarder.warning()!, /destination "crm": its condition cannot be used: line 1, column 17/)
  await deployment.produce([
    someCall({ sourceId: 'crm', messageId: 'c-1' }),
    someCall({ sourceId: 'other', messageId: 'o-1' }),
  ])
  await well.waitFor(1)
  await until(() => sampleOf(forwarder, dispositions('crm', 'deferred')) >= 1)
  await settings.execute({
    type: 'update_destination',
    id: 'crm',
    options: { where: 'call.userId == "u-1"' },
  })
  const [request] = await held.waitFor(1, 20_000)
  assert.equal(request!.json().messageId, 'c-1')
  assert.equal(forwarder.warning(), null)
})
