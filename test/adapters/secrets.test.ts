import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { inspect } from 'node:util'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSecrets } from '../../src/adapters/secrets.ts'
import { PostriderError } from '../../src/errors.ts'

const oldKey = randomBytes(32)
const newKey = randomBytes(32)

test('what is sealed is opened again, whatever the text', () => {
  const secrets = createSecrets([newKey])
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), (text) => {
      assert.equal(secrets.open(secrets.seal(text)), text)
    }),
  )
})

test('the same secret is sealed differently each time, with the same fingerprint', () => {
  const secrets = createSecrets([newKey])
  const [one, two] = [secrets.seal('s3cret'), secrets.seal('s3cret')]
  assert.notEqual(one.ciphertext, two.ciphertext)
  assert.notEqual(one.iv, two.iv)
  assert.equal(one.fingerprint, two.fingerprint)
  assert.match(one.fingerprint, /^[0-9a-f]{12}$/)
  assert.notEqual(secrets.seal('s3cret2').fingerprint, one.fingerprint)
  assert.notEqual(createSecrets([oldKey]).seal('s3cret').fingerprint, one.fingerprint)
})

test('the first key seals, and every key opens', () => {
  const before = createSecrets([oldKey]).seal('s3cret')
  const rotated = createSecrets([newKey, oldKey])
  assert.equal(rotated.open(before), 's3cret')
  const after = rotated.seal('s3cret')
  assert.equal(createSecrets([newKey]).open(after), 's3cret')
  assert.throws(() => createSecrets([oldKey]).open(after), isSecretsKeyError)
})

test('without the key the error names SECRETS_KEY and the key id, and tells no secret', () => {
  const sealed = createSecrets([oldKey]).seal('s3cret-text')
  for (const keys of [[], [newKey]])
    assert.throws(
      () => createSecrets(keys).open(sealed),
      (error) => isSecretsKeyError(error) && (error as Error).message.includes(sealed.keyId),
    )
  assert.throws(() => createSecrets([]).seal('s3cret-text'), isSecretsKeyError)
})

test('bytes that were changed are not opened', () => {
  const secrets = createSecrets([newKey])
  const sealed = secrets.seal('s3cret-text')
  const flipped = (text: string) => (text.startsWith('A') ? 'B' : 'A') + text.slice(1)
  for (const part of ['iv', 'ciphertext', 'tag'] as const)
    assert.throws(() => secrets.open({ ...sealed, [part]: flipped(sealed[part]) }), isSecretsKeyError)
  // A shortened tag would be easy to guess.
  assert.throws(() => secrets.open({ ...sealed, tag: sealed.tag.slice(0, 6) }), isSecretsKeyError)
})

test('a key of the wrong size is refused', () => {
  assert.throws(() => createSecrets([randomBytes(16)]), isSecretsKeyError)
})

test('no key shows in what could be printed', () => {
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
