// Whoever may read and write the settings has every ciphertext. What an attacker needs is no more than that; the text
// of a secret must not come out anywhere but where it was set.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toFields } from '../../../src/adapters/folded-log/settings-record.ts'
import type { SettingsEvent } from '../../../src/core/settings/events.ts'
import type { TemplateSecret } from '../../../src/core/settings/settings.ts'
import { newSecret } from '../../../src/operators/settings/secrets.ts'
import { deploy } from '../../support/deployment/deployment.ts'
import { runCommand } from '../../support/deployment/deployment-cli.ts'
import { startReceiver } from '../../support/receivers.ts'

test('secrets that are moved into headers of another URL, destination or name are not sent', async (t) => {
  const deployment = await deploy(t)
  const { codecs, producer, settings, topics } = deployment
  const attacker = await startReceiver(t)
  const [header, shared] = ['Bearer t3header', 's3shared-value']
  await deployment.destination({
    urls: ['http://127.0.0.1:9/hook'],
    secret: shared,
    headers: [{ urlNumber: 1, name: 'Authorization', value: header }],
  })
  await deployment.settings.execute({
    ...{ type: 'update_destination', id: 'crm', options: { body: { all: '{"key":"${secret.key}"}' } } },
    templateSecrets: [{ name: 'key', value: newSecret('k3y-of-templates', deployment.secrets) }],
  })
  await deployment.destination({ id: 'evil', urls: [attacker.url], secret: null })
  const victim = settings.state.destinations.get('crm')!
  const stolen = victim.urls[0]!.headers[0]!.value
  const withHeaders = (
    id: string,
    url: string,
    ...headers: (typeof victim.urls)[0]['headers']
  ): SettingsEvent => ({
    type: 'destination_updated',
    id,
    urls: [{ id: 'u1', url, headers }],
  })
  const { bound: _, ...unbound } = stolen
  const [ofTemplates] = victim.templateSecrets as [TemplateSecret]
  const { origin } = new URL(attacker.url)
  const withKey = (id: string, ...templateSecrets: TemplateSecret[]): SettingsEvent => ({
    ...withHeaders(id, attacker.url),
    ...{ options: { body: { all: '{"key":"${secret.key}"}' } }, templateSecrets },
  })
  const moves: [id: string, event: SettingsEvent][] = [
    ['evil', withHeaders('evil', attacker.url, { name: 'Authorization', value: stolen })],
    ['evil', withHeaders('evil', attacker.url, { name: 'X-Shared', value: victim.sharedSecret! })],
    ['evil', withHeaders('evil', attacker.url, { name: 'Authorization', value: unbound })],
    ['crm', withHeaders('crm', attacker.url, { name: 'Authorization', value: stolen })],
    ['crm', withHeaders('crm', attacker.url, { name: 'X-Shared', value: victim.sharedSecret! })],
    ['evil', withKey('evil', ofTemplates)],
    ['evil', withKey('evil', { ...ofTemplates, origins: [origin] })],
    ['evil', withKey('evil', { name: 'key', origins: [origin], value: victim.sharedSecret! })],
    ['crm', withKey('crm', ofTemplates)],
    ['crm', withKey('crm', { ...ofTemplates, origins: [origin] })],
  ]
  for (const [id, event] of moves) {
    const value = codecs.settings.encode(
      toFields({
        commandId: `move-${settings.state.version}`,
        expectedVersion: settings.state.version,
        at: 1,
        event,
      }),
    )
    await producer.send({ topic: topics.settings, acks: -1, messages: [{ key: id, value, partition: 0 }] })
    await settings.catchUp()
    const { status, stdout, stderr } = await runCommand(t, deployment, '', 'destinations', 'test', id)
    assert.equal(status, 1, stdout)
    assert.match(
      stderr,
      /it was moved from another destination, URL or header|`postrider secrets rotate`|was set for another host/,
    )
    assert.doesNotMatch(stdout + stderr, /t3header|s3shared|k3y-of/)
  }
  assert.deepEqual(attacker.requests, [])
  const rotated = await runCommand(t, deployment, '', 'secrets', 'rotate')
  assert.doesNotMatch(rotated.stdout + rotated.stderr, /t3header|s3shared|k3y-of/)
})
