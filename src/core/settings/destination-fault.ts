import { headerNameFaults, isHeaderValue } from '../delivery/static-headers.ts'
import type { Destination } from './settings.ts'

/**
 * Why no request can be made of a destination as the settings have it, in one line without any value; null when it
 * can. Commands write nothing of the kind, but a client that may write to the settings' topic can.
 */
export function destinationFault({ urls }: Pick<Destination, 'urls'>): string | null {
  if (urls.length === 0) return 'it has no URL'
  const ids = new Set<string>()
  for (const { id, url, headers } of urls) {
    if (ids.has(id)) return `it has two URLs with the id ${JSON.stringify(id)}`
    ids.add(id)
    if (URL.parse(url) === null) return `what stands as its URL ${JSON.stringify(id)} is none`
    for (const { name } of headers)
      if (headerNameFaults(name).length > 0)
        return `the name of a header of its URL ${JSON.stringify(id)} is none, or reserved`
  }
  return null
}

/** The same of a header's value, which is known only once it was decrypted. */
export const headerFault = (name: string, value: string): string | null =>
  isHeaderValue(value) ? null : `header ${JSON.stringify(name)} has a value that no header can have`
