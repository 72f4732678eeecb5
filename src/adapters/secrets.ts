import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  hkdfSync,
  randomBytes,
  type KeyObject,
} from 'node:crypto'
import type { Secrets } from '../operators/settings/secrets.ts'
import type { SecretPlace, SealedSecret } from '../core/settings/settings.ts'
import { PostriderError } from '../errors.ts'

export type { Secrets } from '../operators/settings/secrets.ts'

/** As key objects, which Node makes of bytes each time they are used: that takes four times as long as to use them. */
interface Key {
  id: string
  cipher: KeyObject
  fingerprint: KeyObject
}

/**
 * Seals and opens secrets of the settings log (docs/security.md). `keys` are 32 bytes each: the first
 * encrypts unless another is chosen, all of them open. The place that a secret is sealed for is authenticated with it:
 * moved anywhere else, it does not open.
 */
export function createSecrets(keys: readonly Uint8Array[]): Secrets {
  const known = keys.map(deriveKey)
  const byId = new Map(known.map((key) => [key.id, key]))
  const keyIds = known.map(({ id }) => id)

  const sealingKey = (keyId = keyIds[0]): Key => {
    const key = keyId === undefined ? undefined : byId.get(keyId)
    if (key) return key
    throw new PostriderError(
      'secrets_key',
      'SECRETS_KEY is not set, and secrets are only kept encrypted: set it to 32 random bytes as hex or ' +
        'base64 (openssl rand -hex 32), the same for every process of this deployment',
    )
  }
  const fingerprint = (text: string, keyId?: string): string =>
    createHmac('sha256', sealingKey(keyId).fingerprint).update(text).digest('hex').slice(0, 12)

  const seal = (text: string, place: SecretPlace, keyId?: string): SealedSecret => {
    const key = sealingKey(keyId)
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', key.cipher, iv)
    cipher.setAAD(Buffer.from(place))
    const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
    return {
      keyId: key.id,
      iv: iv.toString('base64url'),
      ciphertext: ciphertext.toString('base64url'),
      tag: cipher.getAuthTag().toString('base64url'),
      bound: true,
      fingerprint: fingerprint(text, keyId),
    }
  }

  /** @param place null for what was sealed for no place */
  const decrypt = (sealed: SealedSecret, place: SecretPlace | null): string => {
    const key = byId.get(sealed.keyId)
    if (!key)
      throw new PostriderError(
        'secrets_key',
        `a secret in the settings was sealed with key ${sealed.keyId}, which is not in SECRETS_KEY` +
          (known.length > 0 ? ` (it holds ${keyIds.join(', ')})` : ' (it is not set)') +
          ': add that key after a comma, or set the secret again',
      )
    const { iv, ciphertext, tag } = sealed
    try {
      const decipher = createDecipheriv('aes-256-gcm', key.cipher, Buffer.from(iv, 'base64url'), {
        authTagLength: 16,
      })
      if (place !== null) decipher.setAAD(Buffer.from(place))
      decipher.setAuthTag(Buffer.from(tag, 'base64url'))
      return Buffer.concat([
        decipher.update(Buffer.from(ciphertext, 'base64url')),
        decipher.final(),
      ]).toString('utf8')
    } catch {
      throw new PostriderError(
        'secrets_key',
        `a secret in the settings (fingerprint ${sealed.fingerprint}) cannot be opened with key ` +
          `${sealed.keyId} of SECRETS_KEY: its bytes were changed, or it was moved from another destination, URL or ` +
          'header; set the secret again',
      )
    }
  }

  return {
    keyIds,
    fingerprint,
    seal,
    open(sealed, place) {
      if (sealed.bound || !byId.has(sealed.keyId)) return decrypt(sealed, place)
      throw new PostriderError(
        'secrets_key',
        `a secret in the settings (fingerprint ${sealed.fingerprint}) was sealed by a development version, for no ` +
          'place in particular: `postrider secrets rotate` binds it to where it is now, or set the secret again',
      )
    },
    reseal: (sealed, place) => seal(decrypt(sealed, sealed.bound ? place : null), place),
  }
}

/** One key for the cipher and another for fingerprints, so that neither says anything about the other. */
function deriveKey(master: Uint8Array): Key {
  if (master.byteLength !== 32)
    throw new PostriderError('secrets_key', `a key in SECRETS_KEY has ${master.byteLength} bytes, not 32`)
  const derive = (purpose: string) =>
    createSecretKey(new Uint8Array(hkdfSync('sha256', master, new Uint8Array(0), `postrider ${purpose}`, 32)))
  return {
    id: createHash('sha256').update('postrider key id').update(master).digest('hex').slice(0, 8),
    cipher: derive('secrets'),
    fingerprint: derive('fingerprints'),
  }
}
