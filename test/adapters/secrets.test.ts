import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSecrets } from '../../src/adapters/secrets.ts'
import { headerPlace, sharedSecretPlace } from '../../src/core/settings/settings.ts'
import { PostriderError } from '../../src/errors.ts'

const oldKey = randomBytes(32)
const newKey = randomBytes(32)
const here = sharedSecretPlace('crm')

test('every sealed text can be opened again', () => {
  const secrets = createSecrets([newKey])
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
      assert.equal(secrets.open(secrets.seal(text, here), here), text)
    }),
  )
})

test('sealing the same secret twice gives different bytes and the same fingerprint', () => {
  const secrets = createSecrets([newKey])
  const [one, two] = [secrets.seal('s3cret', here), secrets.seal('s3cret', here)]
  assert.notEqual(one.ciphertext, two.ciphertext)
  assert.notEqual(one.iv, two.iv)
  assert.equal(one.fingerprint, two.fingerprint)
  assert.match(one.fingerprint, /^[0-9a-f]{12}$/)
  assert.notEqual(secrets.seal('s3cret2', here).fingerprint, one.fingerprint)
  assert.notEqual(createSecrets([oldKey]).seal('s3cret', here).fingerprint, one.fingerprint)
})

test('the first key seals, and every key opens', () => {
  const before = createSecrets([oldKey]).seal('s3cret', here)
  const rotated = createSecrets([newKey, oldKey])
  assert.equal(rotated.open(before, here), 's3cret')
  const after = rotated.seal('s3cret', here)
  assert.equal(createSecrets([newKey]).open(after, here), 's3cret')
  assert.throws(() => createSecrets([oldKey]).open(after, here), isSecretsKeyError)
})

test('without the key, the error names SECRETS_KEY and the key id and reveals no secret', () => {
  const sealed = createSecrets([oldKey]).seal('s3cret-text', here)
  for (const keys of [[], [newKey]])
    assert.throws(
      () => createSecrets(keys).open(sealed, here),
      (error) => isSecretsKeyError(error) && (error as Error).message.includes(sealed.keyId),
    )
  assert.throws(() => createSecrets([]).seal('s3cret-text', here), isSecretsKeyError)
})

test('bytes that were changed cannot be opened', () => {
  const secrets = createSecrets([newKey])
  const sealed = secrets.seal('s3cret-text', here)
  const flipped = (text: string) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1)
  for (const part of ['iv', 'ciphertext', 'tag'] as const)
    assert.throws(() => secrets.open({ ...sealed, [part]: flipped(sealed[part]) }, here), isSecretsKeyError)
  // A shortened tag would be easy to guess.
  assert.throws(() => secrets.open({ ...sealed, tag: sealed.tag.slice(0, 6) }, here), isSecretsKeyError)
})

test('a secret that was moved to another place cannot be opened, and neither can one that claims to be sealed for no place', () => {
  const secrets = createSecrets([newKey])
  const header = headerPlace('crm', 'https://a.example/hook', 'Authorization')
  const others = [
    here,
    sharedSecretPlace('mail'),
    headerPlace('mail', 'https://a.example/hook', 'Authorization'),
    headerPlace('crm', 'https://attacker.example/hook', 'Authorization'),
    headerPlace('crm', 'https://a.example/other', 'Authorization'),
    headerPlace('crm', 'https://a.example/hook', 'X-Other'),
    '',
  ]
  const sealed = secrets.seal('s3cret-text', header)
  for (const place of others) assert.throws(() => secrets.open(sealed, place), isSecretsKeyError, place)
  for (const place of others.slice(1))
    assert.throws(() => secrets.open(secrets.seal('s3cret-text', here), place), isSecretsKeyError, place)
  const { bound: _, ...unbound } = sealed
  for (const place of [header, here]) assert.throws(() => secrets.reseal(unbound, place), isSecretsKeyError)
  assert.equal(
    secrets.open(sealed, headerPlace('crm', 'https://A.example:443/hook', 'authorization')),
    's3cret-text',
  )
})

test('a key of the wrong size is refused', () => {
  assert.throws(() => createSecrets([randomBytes(16)]), isSecretsKeyError)
})

test('no key appears in anything that can be printed', () => {
  const shown = inspect(createSecrets([newKey]), { depth: 9, showHidden: true })
  assert(!shown.includes(newKey.toString('hex')))
})

function isSecretsKeyError(error: unknown): boolean {
  assert(error instanceof PostriderError)
  assert.equal(error.code, 'secrets_key')
  assert.match(error.message, /SECRETS_KEY/)
  assert.doesNotMatch(inspect(error), /s3cret-text/)
  return true
}
