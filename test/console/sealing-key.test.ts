import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSecrets } from '../../src/adapters/secrets.ts'
import { decide } from '../../src/core/settings/decide.ts'
import { evolve } from '../../src/core/settings/events.ts'
import { initialSettings, type SettingsAggregate } from '../../src/core/settings/settings.ts'
import { newSecret, sealerFor, sealingKey } from '../../src/operators/settings/secrets.ts'

const [oldOnly, newOnly, typo] = [1, 2, 3].map((byte) => createSecrets([Buffer.alloc(32, byte)]))
const both = createSecrets([Buffer.alloc(32, 2), Buffer.alloc(32, 1)])
const [oldId, newId] = [oldOnly!.keyIds[0]!, newOnly!.keyIds[0]!]

/** One destination for each, with a secret that these keys sealed. */
function settingsWith(sealedBy: Record<string, ReturnType<typeof createSecrets> | null>): SettingsAggregate {
  const event = {
    type: 'source_created',
    source: { id: 'shop', name: 'S', writeKey: 'k', enabled: true },
  } as const
  let state = evolve(initialSettings, event)
  for (const [id, secrets] of Object.entries(sealedBy)) {
    const decision = decide(
      {
        ...{ type: 'create_destination', id, name: id, sourceIds: ['shop'], urls: ['https://a.example/'] },
        ...{ headers: [], sharedSecret: secrets && newSecret('s3cret', secrets), enabled: true },
      },
      state,
    )
    assert(decision.accepted && decision.event)
    state = evolve(state, decision.event)
  }
  return state
}
const of = (destinationId: string, anyKey = false) => ({ destinationId, anyKey })

test('without any sealed secret, the first key is used', () => {
  assert.equal(sealingKey(settingsWith({ crm: null }), both, of('web')), newId)
  assert.equal(sealingKey(initialSettings, createSecrets([]), of('web')), undefined)
})

test('during a change of keys, the old key seals until a rotation uses the new one', () => {
  assert.equal(sealingKey(settingsWith({ crm: oldOnly! }), both, of('web')), oldId)
  assert.equal(sealingKey(settingsWith({ crm: oldOnly!, mail: newOnly! }), both, of('web')), newId)
  assert.equal(sealingKey(settingsWith({ crm: newOnly! }), both, of('web')), newId)
})

test('a key under which no secret is sealed is refused, for a new destination and for the only one', () => {
  const state = settingsWith({ crm: oldOnly! })
  for (const id of ['web', 'crm'])
    assert.throws(() => sealingKey(state, typo!, of(id)), {
      code: 'conflict',
      message:
        /^no secret in the settings is encrypted under a key of SECRETS_KEY \(it holds \w{8}\), .*--any-key/,
    })
  assert.equal(sealingKey(state, typo!, of('web', true)), typo!.keyIds[0])
})

test('keys that cannot open an existing secret are refused, except by a command that replaces that secret', () => {
  const state = settingsWith({ crm: oldOnly!, broken: typo! })
  assert.throws(() => sealingKey(state, both, of('crm')), {
    code: 'conflict',
    message:
      /^destination "broken" has a secret that is encrypted under key \w{8}, which is not in SECRETS_KEY .* set that secret again where it was sealed by mistake, or --any-key/,
  })
  assert.equal(sealingKey(state, both, of('broken')), oldId)
  assert.equal(sealingKey(state, both, of('crm', true)), newId)
})

test('a change of keys between sealing and deciding is detected; without a new secret no key is checked', () => {
  const before = settingsWith({ crm: oldOnly! })
  const sealer = sealerFor({ state: before }, both, of('web'))
  const sealed = sealer.newSecret('s3cret').seal('place')
  assert.deepEqual([sealed.keyId, both.open(sealed, 'place')], [oldId, 's3cret'])
  sealer.check(before)
  assert.throws(() => sealer.check(settingsWith({ crm: newOnly! })), { code: 'conflict' })
  sealerFor({ state: before }, typo!, of('web')).check(before)
})
