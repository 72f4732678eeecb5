import assert from 'node:assert/strict'
import { test } from 'node:test'
import { rotateSecrets } from '../../../src/operators/settings/secrets.ts'
import { createSecrets } from '../../../src/adapters/secrets.ts'
import { loadConfig } from '../../../src/config/config.ts'
import { someCall } from '../../support/calls/calls.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { until } from '../../support/until.ts'
import { startReceiver } from '../../support/receivers.ts'
import { dispositions, sampleOf } from '../../support/calls/samples.ts'

const [oldKey, newKey] = ['0123456789abcdef'.repeat(4), 'fedcba9876543210'.repeat(4)]

test('the key is changed during delivery, and afterwards the new key alone still signs as before', async (t) => {
  const deployment = await deploy(t, { SECRETS_KEY: oldKey })
  const receiver = await startReceiver(t, { secret: 's3cret' })
  await deployment.destination({
    urls: [receiver.url],
    headers: [{ urlNumber: 1, name: 'X-Token', value: 't0ken' }],
  })
  const forwarderWith = (keys: string) =>
    deployment.forwarder({ config: loadConfig({ ...deployment.env, SECRETS_KEY: keys }) })
  const deliver = async (messageId: string, count: number) => {
    await deployment.produce([someCall({ messageId })])
    const request = (await receiver.waitFor(count))[count - 1]!
    assert.equal(request.json().messageId, messageId)
    assert.equal(request.signature, 'valid')
    assert.equal(request.headers['x-token'], 't0ken')
  }
  const both = await forwarderWith(`${newKey},${oldKey}`)
  await deliver('m-1', 1)
  const { secretsKeys } = loadConfig({ ...deployment.env, SECRETS_KEY: `${newKey},${oldKey}` })
  const { destinations } = await rotateSecrets(deployment.settings, createSecrets(secretsKeys), {
    dryRun: false,
  })
  assert.deepEqual(destinations, [{ id: 'crm', rotated: 2, current: 0, problems: [] }])
  await deliver('m-2', 2)
  await deployment.drained()
  await both.stop()

  const newOnly = await forwarderWith(newKey)
  await deliver('m-3', 3)
  await newOnly.stop()
  // The old key by itself is worth nothing any more: nothing goes out unsigned.
  await deployment.produce([someCall({ messageId: 'm-4' })])
  const oldOnly = await forwarderWith(oldKey)
  await until(() => sampleOf(oldOnly, dispositions('crm', 'deferred')) >= 1)
  assert.match(oldOnly.warning()!, /which is not in SECRETS_KEY/)
  assert.equal(receiver.requests.length, 3)
})
