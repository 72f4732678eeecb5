import type { NewSecret, Resealed } from '../../core/settings/commands.ts'
import { placedSecrets } from '../../core/settings/secrets.ts'
import type { SettingsState, Destination, SealedSecret, SecretPlace } from '../../core/settings/settings.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import type { SettingsWriter } from './writer.ts'

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

/** The part of the settings log that a rotation uses. */
export type RotatedSettings = Pick<SettingsWriter, 'state' | 'execute'>

export interface RotatedDestination {
  id: string
  /** Secrets that were (in a dry run: would be) sealed again. */
  rotated: number
  /** Secrets that lay under the first key already. */
  current: number
  /** Why the others could not be. */
  problems: string[]
}

export interface Rotation {
  /** The key under which everything lies now. */
  keyId: string
  /** Of all destinations. */
  rotated: number
  destinations: RotatedDestination[]
}

interface Placed {
  place: SecretPlace
  sealed: SealedSecret
}

/** Another writer may seal under an older key meanwhile; one that always does has the wrong SECRETS_KEY. */
const maxPasses = 5

/**
 * Seals every secret of the settings again under the first key, for its place, one event a destination. Interrupted, it
 * goes on where it was when it is run again: what lies under the first key, and was sealed for its place, is left alone. A secret that cannot be opened
 * does not stop the others. Throws `secrets_key` when there is no key, and what `execute` throws.
 */
export async function rotateSecrets(
  settings: RotatedSettings,
  secrets: Secrets,
  { dryRun }: { dryRun: boolean },
): Promise<Rotation> {
  const [keyId] = secrets.keyIds
  if (keyId === undefined)
    throw new PostriderError('secrets_key', 'SECRETS_KEY is not set: there is no key to seal under')
  const isOld = ({ sealed }: Placed): boolean => sealed.keyId !== keyId || !sealed.bound
  const found = new Map<string, RotatedDestination>()
  for (let pass = 1; pass <= maxPasses; pass++) {
    let rotatedSome = false
    for (const { id } of [...settings.state.destinations.values()]) {
      const destination = settings.state.destinations.get(id)!
      const old = placedSecrets(destination).filter(isOld)
      const { resealed, problems } = reseal(old, secrets)
      let rotated = resealed.length
      if (rotated > 0 && !dryRun) {
        const state = await settings.execute({ type: 'reseal_secrets', id, resealed })
        rotated = old.length - oldOf(state.destinations.get(id)).length
      }
      const before = found.get(id)
      found.set(id, {
        id,
        rotated: (before?.rotated ?? 0) + rotated,
        current: before?.current ?? placedSecrets(destination).length - old.length,
        problems,
      })
      rotatedSome ||= rotated > 0
    }
    if (dryRun || !rotatedSome) break
  }
  const destinations = [...found.values()]
  return { keyId, rotated: destinations.reduce((sum, { rotated }) => sum + rotated, 0), destinations }

  function oldOf(destination: Destination | undefined): Placed[] {
    return destination ? placedSecrets(destination).filter(isOld) : []
  }
}

function reseal(old: readonly Placed[], secrets: Secrets) {
  const resealed: Resealed[] = []
  const problems: string[] = []
  for (const { place, sealed: from } of old) {
    try {
      resealed.push({ place, from, to: secrets.reseal(from, place) })
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      problems.push(messageOf(error))
    }
  }
  return { resealed, problems: [...new Set(problems)] }
}

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
