// What browsers say about where a request comes from. A page of another site cannot forge these headers.
import type { IncomingHttpHeaders } from 'node:http'

/** Whether a request that carries the session cookie may come from a page that is not ours. */
export function isForeign(method: string, headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  const isSafe = method === 'GET' || method === 'HEAD'
  if (site !== undefined) return site !== 'same-origin' && !(isSafe && site === 'none')
  if (isSafe) return false
  // Browsers leave it out over plain HTTP to other machines; they send Origin with every unsafe method.
  return hostOf(headers.origin) !== headers.host?.toLowerCase()
}

/** Whether the browser talks TLS, be it to a proxy in front. Only the sender's own cookie depends on it. */
export const isOverTls = (headers: IncomingHttpHeaders): boolean =>
  headers.origin?.startsWith('https://') === true ||
  String(headers['x-forwarded-proto'] ?? '')
    .split(',')[0]!
    .trim() === 'https'

function hostOf(origin: string | undefined): string | null {
  try {
    return origin === undefined ? null : new URL(origin).host
  } catch {
    return null
  }
}
