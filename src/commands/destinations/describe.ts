import type { DestinationOptions } from '../../core/destination-options.ts'
import type { Destination, SealedSecret } from '../../core/settings.ts'
import { printable } from '../output.ts'

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
    /** From 1, as `--header` counts. */
    number: number
    id: string
    url: string
    headers: { name: string; fingerprint: string; keyId: string }[]
    /** ISO 8601; null unless the receiver answered 410. */
    goneAt: string | null
  }[]
}

export function viewOf(destination: Destination): DestinationView {
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

export const headings = ['ID', 'NAME', 'STATE', 'SOURCES', 'URLS', 'SIGNED']

export function rowOf(view: DestinationView): (string | number)[] {
  const gone = view.urls.filter(({ goneAt }) => goneAt !== null).length
  return [
    view.id,
    view.name,
    view.enabled ? 'enabled' : 'disabled',
    view.sourceIds.join(', '),
    gone === 0 ? String(view.urls.length) : `${view.urls.length} (${gone} gone)`,
    view.sharedSecret ? 'yes' : 'no',
  ]
}

export function linesOf(view: DestinationView): string[] {
  const { sharedSecret, earlierSecret, types, events } = view
  return [
    `id             ${view.id}`,
    `name           ${printable(view.name)}`,
    `state          ${view.enabled ? 'enabled' : 'disabled'}`,
    `sources        ${view.sourceIds.join(', ')}`,
    `shared secret  ${sharedSecret ? `fingerprint ${sharedSecret.fingerprint}` : 'none: requests are not signed'}`,
    ...(earlierSecret ? [`               fingerprint ${earlierSecret.fingerprint}, still active`] : []),
    ...(view.standardWebhooks ? ['signatures     Standard Webhooks too'] : []),
    ...(types ? [`call types     ${types.join(', ')}`] : []),
    ...(events
      ? events.map((event, index) => `${index === 0 ? 'events ' : '       '}        ${printable(event)}`)
      : []),
    ...(view.deliverTo === 'every' ? ['deliver to     every URL, each with retries of its own'] : []),
    ...view.urls.flatMap(({ number, id, url, headers, goneAt }) => [
      `URL ${number}          ${printable(url)} (id ${id})`,
      ...headers.map(({ name, fingerprint }) => `               ${name}: fingerprint ${fingerprint}`),
      ...(goneAt === null
        ? []
        : [
            `               gone since ${goneAt}: it answered 410. Once it is back: postrider destinations enable ${view.id}`,
          ]),
    ]),
  ]
}
