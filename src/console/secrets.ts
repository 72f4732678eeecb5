import type { NewSecret } from '../core/settings/commands.ts'
import type { SecretPlace, SealedSecret } from '../core/settings/settings.ts'

/** Seals and opens secrets, each for the place where it is used. Errors: `secrets_key`. */
export interface Secrets {
  /** Names of the keys; the first one seals unless another is chosen, all of them open. */
  readonly keyIds: readonly string[]
  fingerprint(text: string, keyId?: string): string
  seal(text: string, place: SecretPlace, keyId?: string): SealedSecret
  open(sealed: SealedSecret, place: SecretPlace): string
  /** Under the first key. Also takes what was sealed for no place. */
  reseal(sealed: SealedSecret, place: SecretPlace): SealedSecret
}

/** A secret as commands take it, to be sealed with this key or the first one. Throws `secrets_key` without a key. */
export const newSecret = (text: string, secrets: Secrets, keyId?: string): NewSecret => ({
  text,
  fingerprint: secrets.fingerprint(text, keyId),
  seal: (place) => secrets.seal(text, place, keyId),
})
