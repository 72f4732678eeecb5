import { placedSecrets } from '../core/settings/secrets.ts'
import type { NewSecret } from '../core/settings/commands.ts'
import type { SettingsState } from '../core/settings/settings.ts'
import { PostriderError } from '../errors.ts'
import { newSecret, type Secrets } from './secrets.ts'
import type { SettingsWriter } from './settings-writer.ts'

export interface SealingOptions {
  /** The destination whose secrets are set: this may replace one of its own that cannot be opened. */
  destinationId: string
  /** Take the first key whatever the settings hold. */
  anyKey?: boolean | undefined
}

/**
 * The key to seal with: the first one of SECRETS_KEY under which something in the settings is sealed, so that every
 * process that opens what is there opens this too. While the key is being changed that is the old one, until a rotation
 * has brought the new one in. The first key when nothing is sealed yet. Throws `conflict` where SECRETS_KEY is not that
 * of this deployment: forwarders could not open what it seals.
 */
export function sealingKey(
  { destinations }: SettingsState,
  { keyIds }: Pick<Secrets, 'keyIds'>,
  { destinationId, anyKey = false }: SealingOptions,
): string | undefined {
  const [first] = keyIds
  const sealed = [...destinations.values()].flatMap((destination) =>
    placedSecrets(destination).map(({ sealed: { keyId } }) => ({ id: destination.id, keyId })),
  )
  const used = new Set(sealed.map(({ keyId }) => keyId))
  if (first === undefined || anyKey || used.size === 0) return first
  const key = keyIds.find((keyId) => used.has(keyId))
  if (key === undefined)
    throw refused(
      `no secret in the settings is encrypted under a key of SECRETS_KEY (it holds ${keyIds.join(', ')}), but under ` +
        `${[...used].join(', ')}: forwarders could not read this one`,
    )
  const lost = sealed.find(({ id, keyId }) => id !== destinationId && !keyIds.includes(keyId))
  if (lost)
    throw refused(
      `destination "${lost.id}" has a secret that is encrypted under key ${lost.keyId}, which is not in SECRETS_KEY ` +
        `(it holds ${keyIds.join(', ')})`,
      'set that secret again where it was sealed by mistake, ',
    )
  return key
}

/** Seals what one command sets. `check` is for each state that the command is decided on. */
export interface Sealer {
  newSecret(text: string): NewSecret
  check(state: SettingsState): void
}

/** Nothing is asked of the settings before something is sealed. */
export function sealerFor(
  { state }: Pick<SettingsWriter, 'state'>,
  secrets: Secrets,
  options: SealingOptions,
): Sealer {
  let chosen: { keyId: string | undefined } | null = null
  return {
    newSecret(text) {
      chosen ??= { keyId: sealingKey(state, secrets, options) }
      return newSecret(text, secrets, chosen.keyId)
    },
    check(now) {
      if (chosen === null || sealingKey(now, secrets, options) === chosen.keyId) return
      throw new PostriderError('conflict', 'the encryption key was changed at the same moment; try again')
    },
  }
}

const refused = (problem: string, way = ''): PostriderError =>
  new PostriderError(
    'conflict',
    `${problem}. Use the SECRETS_KEY of this deployment, ${way}or --any-key (anyKey in the API) to encrypt under its first key all the same`,
  )
