import type { DestinationOptions } from '../core/settings/destination-options.ts'
import type { Destination, SealedSecret, SettingsState } from '../core/settings/settings.ts'
import { PostriderError } from '../errors.ts'

/** A destination as it may be shown: of secrets only the fingerprint, and which key sealed it. */
export interface DestinationView extends DestinationOptions {
  id: string
  name: string
  type: string
  enabled: boolean
  sourceIds: string[]
  sharedSecret: { fingerprint: string; keyId: string } | null
  /** Still active beside the newest one. */
  earlierSecret: { fingerprint: string; keyId: string } | null
  urls: {
    /** From 1. */
    number: number
    id: string
    url: string
    headers: { name: string; fingerprint: string; keyId: string }[]
    /** ISO 8601; null unless the receiver answered 410. */
    goneAt: string | null
  }[]
}

export function destinationView(destination: Destination): DestinationView {
  const { id, name, type, enabled, sourceIds, sharedSecret, earlierSecret, options, urls } = destination
  return {
    id,
    name,
    type,
    enabled,
    sourceIds,
    sharedSecret: sharedSecret && shownOf(sharedSecret),
    earlierSecret: earlierSecret && shownOf(earlierSecret),
    ...options,
    urls: urls.map((url, index) => ({
      number: index + 1,
      id: url.id,
      url: url.url,
      headers: url.headers.map((header) => ({ name: header.name, ...shownOf(header.value) })),
      goneAt: url.goneAt === null ? null : new Date(url.goneAt).toISOString(),
    })),
  }
}

function shownOf({ fingerprint, keyId }: SealedSecret): { fingerprint: string; keyId: string } {
  return { fingerprint, keyId }
}

/** Throws `not_found`. */
export function destinationIn(state: SettingsState, id: string): Destination {
  const destination = state.destinations.get(id)
  if (!destination)
    throw new PostriderError(
      'not_found',
      `destination ${JSON.stringify(id)} does not exist; \`postrider destinations list\` shows all`,
    )
  return destination
}
