import { randomBytes } from 'node:crypto'
import type { Secrets } from '../../adapters/secrets.ts'
import type { SettingsLog } from '../../adapters/folded-log/settings-log.ts'
import { newSecret } from '../../operators/settings/secrets.ts'
import { placedSecrets } from '../../core/settings/secrets.ts'
import { PostriderError, messageOf } from '../../errors.ts'

/** The demo's source, and the destination that its calls go to. */
export const demoId = 'demo'

export interface DemoReceiver {
  url: string
  /** Where it was in the run before; null when it was nowhere. */
  formerUrl: string | null
  secret: string
}

/**
 * Makes the demo's source and destination, or lets the destination follow its receiver where that moved. Everything
 * else about them stays as the user left it.
 */
export async function ensureDemo(
  settings: SettingsLog,
  secrets: Secrets,
  receiver: DemoReceiver,
): Promise<void> {
  await ensureSource(settings, demoId, 'Demo')
  const destination = { id: demoId, name: 'Demo receiver', sourceIds: [demoId] }
  await ensureDestination(settings, secrets, destination, receiver)
}

export async function ensureSource(settings: SettingsLog, id: string, name: string): Promise<void> {
  if (settings.state.sources.has(id)) return
  const writeKey = randomBytes(16).toString('hex')
  await settings.execute({ type: 'create_source', id, name, writeKey, enabled: true })
}

/** Makes the destination, or lets it follow its receiver where that moved. */
export async function ensureDestination(
  settings: SettingsLog,
  secrets: Secrets,
  destination: { id: string; name: string; sourceIds: string[] },
  receiver: DemoReceiver,
): Promise<void> {
  const { id } = destination
  const sharedSecret = newSecret(receiver.secret, secrets)
  const present = settings.state.destinations.get(id)
  if (!present) {
    await settings.execute({
      type: 'create_destination',
      ...destination,
      urls: [receiver.url],
      headers: [],
      sharedSecret,
      enabled: true,
    })
    return
  }
  const urls = present.urls.map(({ url }) => (url === receiver.formerUrl ? receiver.url : url))
  const moved = urls.some((url, at) => url !== present.urls[at]!.url)
  // Fingerprints are keyed: they also differ where another SECRETS_KEY sealed the same secret.
  const { sharedSecret: before } = present
  const resealed = before?.fingerprint !== sharedSecret.fingerprint || !before.bound
  if (moved || resealed)
    await settings.execute({
      type: 'update_destination',
      id,
      ...(moved && { urls }),
      ...(resealed && { sharedSecret }),
    })
}

/**
 * The destinations of which a secret cannot be opened, with why: their calls could not be signed. `except` leaves
 * one out.
 */
export function sealedDestinations(settings: SettingsLog, secrets: Secrets, except: string | null): string[] {
  return [...settings.state.destinations.values()]
    .filter(({ id }) => id !== except)
    .flatMap((destination) => {
      const { id } = destination
      try {
        for (const { sealed, place } of placedSecrets(destination)) secrets.open(sealed, place)
        return []
      } catch (error) {
        if (!(error instanceof PostriderError)) throw error
        return [`destination ${JSON.stringify(id)}: ${messageOf(error)}`]
      }
    })
}
