import assert from 'node:assert/strict'
import { createCipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { createSecrets, type Secrets } from '../../src/adapters/secrets.ts'
import type { SettingsCommand } from '../../src/core/settings/commands.ts'
import { decide } from '../../src/core/settings/decide.ts'
import { evolve } from '../../src/core/settings/events.ts'
import { placedSecrets } from '../../src/core/settings/secrets.ts'
import { initialSettings, type SettingsAggregate } from '../../src/core/settings/settings.ts'
import { newSecret, rotateSecrets, type RotatedSettings } from '../../src/operators/settings/secrets.ts'

const [oldKey, newKey, otherKey] = [randomBytes(32), randomBytes(32), randomBytes(32)]
const oldOnly = createSecrets([oldKey])
const both = createSecrets([newKey, oldKey])
const newOnly = createSecrets([newKey])

/** The settings in memory; `before` runs before each command, as a crash or another writer would. */
class Settings implements RotatedSettings {
  state: SettingsAggregate = initialSettings
  before: (command: SettingsCommand) => void = () => {}

  apply(command: SettingsCommand): void {
    const decision = decide(command, this.state)
    assert(decision.accepted, JSON.stringify(decision))
    if (decision.event) this.state = evolve(this.state, decision.event)
  }

  async execute(command: SettingsCommand): Promise<SettingsAggregate> {
    this.before(command)
    this.apply(command)
    return this.state
  }

  opened(secrets: Secrets): string[][] {
    return [...this.state.destinations.values()].map((destination) =>
      placedSecrets(destination).map(({ sealed, place }) => secrets.open(sealed, place)),
    )
  }
}

/** Two destinations with two shared secrets and one header each. */
function settingsUnder(secrets: Secrets): Settings {
  const settings = new Settings()
  const secret = (text: string) => newSecret(text, secrets)
  settings.apply({ type: 'create_source', id: 'shop', name: 'Shop', writeKey: 'k', enabled: true })
  for (const id of ['crm', 'mail']) {
    settings.apply({
      type: 'create_destination',
      id,
      name: id,
      sourceIds: ['shop'],
      urls: ['https://a.example/'],
      headers: [{ urlNumber: 1, name: 'X-Token', value: secret(`${id}-header`) }],
      sharedSecret: secret(`${id}-earlier`),
      enabled: true,
    })
    settings.apply({ type: 'update_destination', id, addSecret: secret(`${id}-newest`) })
  }
  return settings
}

const texts = ['crm', 'mail'].map((id) => [`${id}-newest`, `${id}-earlier`, `${id}-header`])

test('everything is resealed under the first key, and the old one is no longer needed', async () => {
  const settings = settingsUnder(oldOnly)
  assert.throws(() => settings.opened(newOnly))
  const { version } = settings.state
  assert.deepEqual(await rotateSecrets(settings, both, { dryRun: true }), {
    keyId: newOnly.keyIds[0]!,
    rotated: 6,
    destinations: ['crm', 'mail'].map((id) => ({ id, rotated: 3, current: 0, problems: [] })),
  })
  assert.equal(settings.state.version, version, 'a dry run changes nothing')
  const { destinations } = await rotateSecrets(settings, both, { dryRun: false })
  assert.deepEqual(
    destinations.map(({ rotated }) => rotated),
    [3, 3],
  )
  assert.deepEqual(settings.opened(newOnly), texts)
  assert.equal(settings.state.version, version + 2, 'one event a destination')
  const again = await rotateSecrets(settings, newOnly, { dryRun: false })
  assert.deepEqual(
    again.destinations.map(({ rotated, current }) => [rotated, current]),
    [
      [0, 3],
      [0, 3],
    ],
  )
  assert.equal(settings.state.version, version + 2)
})

test('an interrupted rotation continues where it stopped', async () => {
  const settings = settingsUnder(oldOnly)
  settings.before = (command) => {
    if (command.type === 'reseal_secrets' && command.id === 'mail') throw new Error('the network is gone')
  }
  await assert.rejects(rotateSecrets(settings, both, { dryRun: false }), /network/)
  assert.deepEqual(settings.opened(both), texts, 'both keys still open all')
  settings.before = () => {}
  const { destinations } = await rotateSecrets(settings, both, { dryRun: false })
  assert.deepEqual(
    destinations.map(({ rotated, current }) => [rotated, current]),
    [
      [0, 3],
      [3, 0],
    ],
  )
  assert.deepEqual(settings.opened(newOnly), texts)
})

test('secrets that another writer sets meanwhile are kept, and resealed too if they use the old key', async () => {
  const settings = settingsUnder(oldOnly)
  settings.before = () => {
    settings.before = () => {}
    const sharedSecret = newSecret('meanwhile', oldOnly)
    settings.apply({ type: 'update_destination', id: 'crm', sharedSecret })
  }
  await rotateSecrets(settings, both, { dryRun: false })
  assert.deepEqual(settings.opened(newOnly), [['meanwhile', 'crm-header'], texts[1]])
})

test('a secret that no key can open is reported and does not stop the others', async () => {
  const settings = settingsUnder(oldOnly)
  const lost = newSecret('lost', createSecrets([otherKey]))
  settings.apply({ type: 'update_destination', id: 'crm', sharedSecret: lost })
  const { destinations } = await rotateSecrets(settings, both, { dryRun: false })
  assert.deepEqual(
    destinations.map(({ rotated }) => rotated),
    [1, 3],
  )
  assert.match(destinations[0]!.problems.join(), /which is not in SECRETS_KEY/)
  assert.deepEqual(settings.opened(createSecrets([newKey, otherKey])), [['lost', 'crm-header'], texts[1]])
  await assert.rejects(rotateSecrets(settings, createSecrets([]), { dryRun: false }), { code: 'secrets_key' })
})

test('a secret that a development version sealed without a place is not used until a rotation binds it to its place', async () => {
  const settings = settingsUnder(newOnly)
  const before = settings.state.destinations.get('mail')!
  // As those versions sealed: with no place, which was not said either.
  const [id] = newOnly.keyIds
  const cipher = createCipheriv('aes-256-gcm', cipherKeyOf(newKey), Buffer.alloc(12))
  const ciphertext = Buffer.concat([cipher.update('mail-old', 'utf8'), cipher.final()]).toString('base64url')
  const tag = cipher.getAuthTag().toString('base64url')
  const iv = Buffer.alloc(12).toString('base64url')
  const sharedSecret = { keyId: id!, iv, ciphertext, tag, fingerprint: 'abc' }
  settings.state = evolve(settings.state, { type: 'destination_updated', id: before.id, sharedSecret })
  assert.throws(() => settings.opened(newOnly), {
    code: 'secrets_key',
    message: /`postrider secrets rotate` binds it/,
  })
  const { destinations } = await rotateSecrets(settings, newOnly, { dryRun: false })
  assert.deepEqual(
    destinations.map(({ rotated, current }) => [rotated, current]),
    [
      [0, 3],
      [1, 1],
    ],
  )
  assert.deepEqual(settings.opened(newOnly)[1], ['mail-old', 'mail-header'])
})

const cipherKeyOf = (key: Buffer) =>
  new Uint8Array(hkdfSync('sha256', key, new Uint8Array(0), 'postrider secrets', 32))

test('a secret that was moved to another place is not resealed there', async () => {
  const settings = settingsUnder(oldOnly)
  const [crm, mail] = ['crm', 'mail'].map((id) => settings.state.destinations.get(id)!)
  settings.state = evolve(settings.state, {
    type: 'destination_updated',
    id: 'mail',
    urls: [
      {
        ...mail!.urls[0]!,
        headers: [
          { name: 'X-Token', value: crm!.urls[0]!.headers[0]!.value },
          { name: 'X-Shared', value: mail!.sharedSecret! },
        ],
      },
    ],
  })
  const { destinations } = await rotateSecrets(settings, both, { dryRun: false })
  assert.match(destinations[1]!.problems.join(), /it was moved from another destination, URL or header/)
  assert.equal(destinations[1]!.rotated, 2, 'the two that stand where they were sealed for')
})
