import { randomUUID } from 'node:crypto'
import { createSecrets } from '../../../src/adapters/secrets.ts'
import { toFields } from '../../../src/adapters/folded-log/settings-record.ts'
import type { SettingsEvent } from '../../../src/core/settings/events.ts'
import { sharedSecretPlace } from '../../../src/core/settings/settings.ts'
import { sharedSecret } from '../../calls.ts'
import type { Deployment } from '../../rig.ts'

export const destinationsPerSource = 10

/**
 * Writes the log of a deployment with that many destinations, each with a URL and a secret, and a tenth as many sources: one
 * event for each, as commands would have written them one after another.
 */
export async function writeSettings(deployment: Deployment, destinations: number): Promise<number> {
  const { codecs, config, topics } = deployment
  const secrets = createSecrets(config.secretsKeys)
  const sources = Math.ceil(destinations / destinationsPerSource)
  const at = Date.now()
  const nth = (index: number) => {
    const event = index < sources ? sourceCreated(index) : destinationCreated(index - sources)
    const fields = toFields({ commandId: randomUUID(), expectedVersion: index, at, actor: 'bench', event })
    return { key: String(index), value: codecs.settings.encode(fields) }
  }
  const destinationCreated = (index: number): SettingsEvent => {
    const id = `destination-${index}`
    return {
      type: 'destination_created',
      destination: {
        ...{ id, name: `Destination ${index}`, type: 'Webhooks', enabled: true },
        sourceIds: [sourceId(Math.floor(index / destinationsPerSource))],
        urls: [{ id: 'u1', url: `http://127.0.0.1:9/hooks/${index}`, headers: [] }],
        sharedSecret: secrets.seal(sharedSecret, sharedSecretPlace(id)),
      },
    }
  }
  const events = sources + destinations
  await deployment.append(topics.settings, events, nth, 'settings')
  return events
}

const sourceId = (index: number): string => `source-${index}`

const sourceCreated = (index: number): SettingsEvent => ({
  type: 'source_created',
  source: { id: sourceId(index), name: `Source ${index}`, writeKey: `key-${index}`, enabled: true },
})
