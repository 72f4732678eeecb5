import { destinationFault, headerFault } from '../../core/settings/fault.ts'
import {
  headerPlace,
  sharedSecretPlace,
  type SecretPlace,
  type Destination,
  type Endpoint,
  type SealedSecret,
} from '../../core/settings/settings.ts'
import { activeSecrets } from '../../core/settings/secrets.ts'
import type { WebhookTarget } from '../send/webhook-transport.ts'

export type OpenSecret = (sealed: SealedSecret, place: SecretPlace) => string

/**
 * What a destination needs of its settings before anything can be sent to it: its active shared secrets, the newest
 * first, and its targets by URL id. Throws when a secret cannot be opened, or an event holds what no command would have
 * written.
 */
export function setUp(
  destination: Destination,
  open: OpenSecret,
): { secrets: readonly string[]; targets: ReadonlyMap<string, WebhookTarget> } {
  const fault = destinationFault(destination)
  if (fault !== null) throw new Error(fault)
  const { id, urls } = destination
  const secrets = activeSecrets(destination).map((sealed) => open(sealed, sharedSecretPlace(id)))
  const targets = new Map(urls.map((endpoint) => [endpoint.id, targetOf(id, endpoint, secrets, open)]))
  return { secrets, targets }
}

function targetOf(
  destinationId: string,
  { url, headers }: Endpoint,
  secrets: readonly string[],
  open: OpenSecret,
): WebhookTarget {
  // Without a prototype: a header may have any name, `__proto__` too.
  const opened = Object.create(null) as Record<string, string>
  for (const { name, value: sealed } of headers) {
    const value = open(sealed, headerPlace(destinationId, url, name))
    const fault = headerFault(name, value)
    if (fault !== null) throw new Error(fault)
    opened[name] = value
  }
  return { url, headers: opened, secrets }
}
