import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto'
import type { Secrets } from '../console/ports.ts'
import { PostriderError } from '../errors.ts'

export type { Secrets } from '../console/ports.ts'

interface Key {
  id: string
  cipher: Uint8Array
  fingerprint: Uint8Array
}

/**
 * Seals and opens secrets of the settings log (contracts.md, Settings). `keys` are 32 bytes each: the first
 * encrypts, all of them open. A ciphertext is not bound to its place (destination, URL, header): an edit of the URL
 * list moves sealed headers without opening them.
 */
export function createSecrets(keys: readonly Uint8Array[]): Secrets {
  const known = keys.map(deriveKey)
  const byId = new Map(known.map((key) => [key.id, key]))
  const first = known[0]

  return {
    keyId: first?.id ?? null,

    seal(text) {
      if (!first)
        throw new PostriderError(
          'secrets_key',
          'SECRETS_KEY is not set, and secrets are only kept encrypted: set it to 32 random bytes as hex or ' +
            'base64 (openssl rand -hex 32), the same for every process of this deployment',
        )
      const iv = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', first.cipher, iv)
      const ciphertext = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
      return {
        keyId: first.id,
        iv: iv.toString('base64url'),
        ciphertext: ciphertext.toString('base64url'),
        tag: cipher.getAuthTag().toString('base64url'),
        fingerprint: createHmac('sha256', first.fingerprint).update(text).digest('hex').slice(0, 12),
      }
    },

    open(sealed) {
      const key = byId.get(sealed.keyId)
      if (!key)
        throw new PostriderError(
          'secrets_key',
          `a secret in the settings was sealed with key ${sealed.keyId}, which is not in SECRETS_KEY` +
            (known.length > 0 ? ` (it holds ${known.map(({ id }) => id).join(', ')})` : ' (it is not set)') +
            ': add that key after a comma, or set the secret anew',
        )
      const { iv, ciphertext, tag } = sealed
      try {
        const decipher = createDecipheriv('aes-256-gcm', key.cipher, Buffer.from(iv, 'base64url'), {
          authTagLength: 16,
        })
        decipher.setAuthTag(Buffer.from(tag, 'base64url'))
        return Buffer.concat([
          decipher.update(Buffer.from(ciphertext, 'base64url')),
          decipher.final(),
        ]).toString('utf8')
      } catch {
        throw new PostriderError(
          'secrets_key',
          `a secret in the settings (fingerprint ${sealed.fingerprint}) cannot be opened with key ` +
            `${sealed.keyId} of SECRETS_KEY: its bytes were changed; set the secret anew`,
        )
      }
    },
  }
}

/** One key for the cipher and another for fingerprints, so that neither says anything about the other. */
function deriveKey(master: Uint8Array): Key {
  if (master.byteLength !== 32)
    throw new PostriderError('secrets_key', `a key in SECRETS_KEY has ${master.byteLength} bytes, not 32`)
  const derive = (purpose: string) =>
    new Uint8Array(hkdfSync('sha256', master, new Uint8Array(0), `postrider ${purpose}`, 32))
  return {
    id: createHash('sha256').update('postrider key id').update(master).digest('hex').slice(0, 8),
    cipher: derive('secrets'),
    fingerprint: derive('fingerprints'),
  }
}
