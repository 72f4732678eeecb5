import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decide } from '../../../src/core/settings/decide.ts'
import { evolve } from '../../../src/core/settings/events.ts'
import type { SettingsCommand } from '../../../src/core/settings/commands.ts'
import { noRules } from '../../../src/core/settings/deployment-rules.ts'
import {
  initialSettings,
  type SealedSecret,
  type SettingsAggregate,
} from '../../../src/core/settings/settings.ts'
import { placedSecrets } from '../../../src/core/settings/secrets.ts'

const secretOf = (text: string) => ({
  text,
  fingerprint: text,
  seal: (place: string): SealedSecret => ({
    ...{ keyId: 'k', iv: text, ciphertext: place, tag: '', fingerprint: text },
  }),
})
const secret = (name: string, text: string | null) => ({ name, value: text === null ? null : secretOf(text) })

const after = (state: SettingsAggregate, command: SettingsCommand): SettingsAggregate => {
  const decision = decide(command, state, noRules)
  assert.ok(decision.accepted, JSON.stringify(decision))
  return decision.event ? evolve(state, decision.event) : state
}
const faultsOf = (state: SettingsAggregate, command: SettingsCommand): string[] => {
  const decision = decide(command, state, noRules)
  return decision.accepted ? [] : decision.faults.map(({ field, message }) => `${field}: ${message}`)
}

const source = after(initialSettings, {
  ...{ type: 'create_source', id: 'shop', name: 'Shop', writeKey: 'write-key-of-shop-1', enabled: true },
})
type Create = Extract<SettingsCommand, { type: 'create_destination' }>
const creation = (given: Partial<Create> = {}): Create => ({
  ...{ type: 'create_destination', id: 'crm', name: 'CRM', sourceIds: ['shop'], headers: [] },
  ...{ urls: ['https://crm.test/a?k=${secret.key}'], sharedSecret: null, enabled: true },
  templateSecrets: [secret('key', 's3cret')],
  ...given,
})
const crm = after(source, creation())
type Update = Extract<SettingsCommand, { type: 'update_destination' }>
const update = (given: Partial<Update>): Update => ({ type: 'update_destination', id: 'crm', ...given })
const body = (text: string) => ({ options: { body: { all: text } } })

test('a template may name the secrets that there are, and none may go that one names', () => {
  const none = /there is no secret of that name$/
  for (const given of [
    { templateSecrets: [] },
    { urls: ['https://crm.test/a'], ...body('{"a":"x ${secret.none}"}') },
    { headers: [{ urlNumber: 1, name: 'X-Key', value: secretOf('${secret.none}') }] },
  ])
    assert.match(faultsOf(source, creation(given)).join(), none)
  for (const given of [
    body('{"a":["${secret.none}"]}'),
    { urls: ['https://crm.test/${secret.none}'] },
    { headers: [{ urlNumber: 1, name: 'X-Key', value: secretOf('Bearer ${secret.none}') }] },
    { templateSecrets: [secret('key', null)] },
  ])
    assert.match(faultsOf(crm, update(given)).join(), none, JSON.stringify(given))
  const named = after(
    crm,
    update({ headers: [{ urlNumber: 1, name: 'X-Key', value: secretOf('${secret.key}') }] }),
  )
  assert.match(
    faultsOf(
      named,
      update({ urls: ['https://crm.test/a?k=${secret.key}'], templateSecrets: [secret('key', null)] }),
    ).join(),
    /^templateSecrets: URL 1 names secret\.key, .*header X-Key of URL 1 names secret\.key/,
  )
  const gone = after(crm, update({ urls: ['https://crm.test/a'], templateSecrets: [secret('key', null)] }))
  assert.deepEqual(gone.destinations.get('crm')!.templateSecrets, [])
})

test('one secret is set without the others, and each is sealed for its destination, its name and its hosts', () => {
  const both = after(crm, update({ templateSecrets: [secret('second', 'n3w')] }))
  const { templateSecrets } = both.destinations.get('crm')!
  assert.deepEqual(
    templateSecrets.map(({ name, value }) => [name, value.fingerprint, value.ciphertext]),
    [
      ['key', 's3cret', '["template-secret","key","crm","https://crm.test"]'],
      ['second', 'n3w', '["template-secret","second","crm","https://crm.test"]'],
    ],
  )
  assert.deepEqual(
    placedSecrets(both.destinations.get('crm')!).map(({ place }) => place),
    templateSecrets.map(({ value }) => value.ciphertext),
  )
})

test('another host needs the secret again, and so does the same one without TLS', () => {
  for (const url of ['https://evil.test/a', 'http://crm.test/a', 'https://crm.test:8443/a']) {
    const urls = [`${url}?k=\${secret.key}`]
    assert.match(
      faultsOf(crm, update({ urls })).join(),
      /was set for https:\/\/crm\.test: another host needs it again/,
    )
    const moved = after(crm, update({ urls, templateSecrets: [secret('key', 's3cret')] }))
    assert.deepEqual(moved.destinations.get('crm')!.templateSecrets[0]!.origins, [new URL(url).origin])
  }
  after(crm, update({ urls: ['https://CRM.test:443/elsewhere?k=${secret.key}'] }))
})

test('a secret is one line that can stand anywhere in a request', () => {
  const long = 'x'.repeat(1_025)
  for (const text of ['', long, 'a\nb', 'a\r', ' a', 'a ', 'é', '\u0000', '.', '..'])
    assert.match(
      faultsOf(crm, update({ templateSecrets: [secret('key', text)] })).join(),
      /^templateSecrets: /,
      text,
    )
  for (const name of ['', '1a', 'a-b', 'a.b', 'a'.repeat(65)])
    assert.match(
      faultsOf(crm, update({ templateSecrets: [secret(name, 'x')] })).join(),
      /is no name of a secret/,
    )
  after(crm, update({ templateSecrets: [secret('key', 'a "b" \\ ${x} %00')] }))
})

test('a batch may have secrets in its URL and headers, for they are those of every request', () => {
  const batch = { options: { batch: 10 } }
  after(source, creation(batch))
  const mixed = creation({ ...batch, urls: ['https://crm.test/${call.userId}?k=${secret.key}'] })
  assert.match(faultsOf(source, mixed).join(), /hole in its URL or in a header/)
})

test('a secret that was sealed again under another key takes the place of the same one, and of no newer one', () => {
  const { templateSecrets } = crm.destinations.get('crm')!
  const { ciphertext: place } = templateSecrets[0]!.value
  const from = templateSecrets[0]!.value
  const to = { ...from, keyId: 'k2' }
  const resealed = [{ place, from, to }]
  const next = after(crm, { type: 'reseal_secrets', id: 'crm', resealed })
  assert.equal(next.destinations.get('crm')!.templateSecrets[0]!.value.keyId, 'k2')
  const changed = after(crm, update({ templateSecrets: [secret('key', 'newer')] }))
  assert.equal(after(changed, { type: 'reseal_secrets', id: 'crm', resealed }), changed)
})
