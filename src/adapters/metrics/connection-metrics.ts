import type { ConnectionCounts } from '../webhook/connection-counts.ts'
import { heading } from './exposition.ts'

const families: readonly (readonly [field: keyof ConnectionCounts, name: string, help: string])[] = [
  ['opened', 'connections_opened', 'Connections opened to endpoints.'],
  ['resumed', 'connections_resumed', 'Of these, those that took up a TLS session.'],
  ['retired', 'connections_retired', 'Connections ended because they had been used for long enough.'],
  ['restarts', 'requests_restarted', 'Requests that went to a new connection because theirs had ended.'],
  ['malformed', 'malformed_responses', 'Responses that are not HTTP/1.1, or more than is read of one.'],
]

/** The connections of all endpoints together: they are shared by host. */
export function connectionLines(counts: Readonly<ConnectionCounts>): string {
  const lines = families.map(([field, name, help]) => {
    const family = `postrider_webhook_${name}_total`
    return `${heading(family, 'counter', help)}${family} ${counts[field]}\n`
  })
  return lines.join('')
}
