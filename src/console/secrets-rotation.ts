import type { Resealed } from '../core/settings/commands.ts'
import { placedSecrets } from '../core/settings/secrets.ts'
import type { Destination, SealedSecret, SecretPlace } from '../core/settings/settings.ts'
import { PostriderError, messageOf } from '../errors.ts'
import type { Secrets } from './secrets.ts'
import type { SettingsWriter } from './settings-writer.ts'

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
