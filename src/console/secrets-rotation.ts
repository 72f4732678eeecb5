import { sealedSecrets } from '../core/settings-secrets.ts'
import type { Destination, SealedSecret } from '../core/settings.ts'
import { PostriderError, messageOf } from '../errors.ts'
import type { Secrets, Settings } from './ports.ts'

/** The part of the settings log that a rotation uses. */
export type RotatedSettings = Pick<Settings, 'state' | 'execute'>

export interface RotatedDestination {
  id: string
  /** Secrets that were (in a dry run: would be) sealed anew. */
  rotated: number
  /** Secrets that lay under the first key already. */
  current: number
  /** Why the others could not be. */
  problems: string[]
}

export interface Rotation {
  /** The key under which everything lies now. */
  keyId: string
  destinations: RotatedDestination[]
}

/** Another writer may seal under an older key meanwhile; whoever does so for ever has the wrong SECRETS_KEY. */
const maxPasses = 5

/**
 * Seals every secret of the settings anew under the first key, one event a destination. Interrupted, it goes on
 * where it was when it is run again: what lies under the first key is left alone. A secret that cannot be opened
 * does not stop the others. Throws `secrets_key` when there is no key, and what `execute` throws.
 */
export async function rotateSecrets(
  settings: RotatedSettings,
  secrets: Secrets,
  { dryRun }: { dryRun: boolean },
): Promise<Rotation> {
  const { keyId } = secrets
  if (keyId === null)
    throw new PostriderError('secrets_key', 'SECRETS_KEY is not set: there is no key to seal under')
  const isOld = (sealed: SealedSecret): boolean => sealed.keyId !== keyId
  const found = new Map<string, RotatedDestination>()
  for (let pass = 1; pass <= maxPasses; pass++) {
    let rotatedSome = false
    for (const { id } of [...settings.state.destinations.values()]) {
      const destination = settings.state.destinations.get(id)!
      const old = sealedSecrets(destination).filter(isOld)
      const { resealed, problems } = sealAnew(old, secrets)
      let rotated = resealed.length
      if (rotated > 0 && !dryRun) {
        const state = await settings.execute({ type: 'reseal_secrets', id, resealed })
        rotated = old.length - oldOf(state.destinations.get(id)).length
      }
      const before = found.get(id)
      found.set(id, {
        id,
        rotated: (before?.rotated ?? 0) + rotated,
        current: before?.current ?? sealedSecrets(destination).length - old.length,
        problems,
      })
      rotatedSome ||= rotated > 0
    }
    if (dryRun || !rotatedSome) break
  }
  return { keyId, destinations: [...found.values()] }

  function oldOf(destination: Destination | undefined): SealedSecret[] {
    return destination ? sealedSecrets(destination).filter(isOld) : []
  }
}

function sealAnew(old: readonly SealedSecret[], secrets: Secrets) {
  const resealed: { from: SealedSecret; to: SealedSecret }[] = []
  const problems: string[] = []
  for (const from of old) {
    try {
      resealed.push({ from, to: secrets.seal(secrets.open(from)) })
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      problems.push(messageOf(error))
    }
  }
  return { resealed, problems: [...new Set(problems)] }
}
