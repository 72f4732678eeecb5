import type { FastifyRequest } from 'fastify'
import type { PublicAddress } from '../../collector/sdk-documents.ts'
import type { ClientAddress } from './client-address.ts'

/** A name or an address, and a port: what is neither would be a link of the sender's making. */
const hostForm = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/**
 * Where the sender reached the collector: COLLECTOR_URL, else what the request says. Null where it says nothing that could
 * be. Whether TLS ended before it is believed of trusted proxies only.
 */
export function publicAddress(
  request: FastifyRequest,
  collectorUrl: string | null,
  clientAddress: ClientAddress,
): PublicAddress | null {
  if (collectorUrl !== null) {
    const { protocol, host, pathname } = new URL(collectorUrl)
    return {
      protocol: protocol === 'https:' ? 'https' : 'http',
      base: host + pathname.replace(/\/+$/, ''),
    }
  }
  const { host, 'x-forwarded-proto': forwarded } = request.headers
  if (host === undefined || !hostForm.test(host)) return null
  const isTls =
    typeof forwarded === 'string' &&
    clientAddress.trusts(request.socket.remoteAddress ?? '') &&
    forwarded.split(',').at(-1)!.trim().toLowerCase() === 'https'
  return { protocol: isTls ? 'https' : 'http', base: host }
}
