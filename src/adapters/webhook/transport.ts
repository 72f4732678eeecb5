import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type LookupFunction } from 'node:net'
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls'
import type { Config } from '../../config/config.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import type { TlsLogin, WebhookTarget, WebhookTransport } from '../../forwarder/send/webhook-transport.ts'
import { AddressGuard } from './address-guard.ts'
import { ConnectionCounts } from './connection-counts.ts'
import { Openings, PollPhase, type HttpClient } from './connection.ts'
import { Deadlines } from './deadlines.ts'
import { DirectConnection } from './direct/direct-connection.ts'
import { WebhookEndpoint, type EndpointOptions } from './endpoint.ts'
import { NameLookup, type NameLookupOptions } from './name-lookup.ts'
import { WebhookOrigin } from './origin.ts'
import { TokenSource } from './token-source.ts'
import { plainWayOut, WaysOut, type WayOutSettings } from './ways-out.ts'

export interface WebhookTransportOptions {
  /** From send() to the last byte of the response: look-up, connect and TLS included. In ms; default 5,000. */
  timeoutMs?: number
  /** What went out and came back is kept of successes, too; default false. */
  keepsSuccesses?: boolean
  /** CIDRs that may be reached although they are not public. */
  allowedNetworks: readonly string[]
  /** Roots to trust besides Node's own, in PEM form. */
  ca: string | null
  /** The same at proxies; default none. */
  proxyCa?: string | null
  /** How requests go out; default directly. */
  wayOut?: Partial<WayOutSettings>
  /** Resolves host names; default the system's. Its answers are always vetted. */
  lookup?: LookupFunction
  /** How else names are looked up. */
  names?: NameLookupOptions
  /** The wall clock in epoch ms, for Retry-After dates; default Date.now. */
  now?: () => number
  /** A monotonic clock in ms, for the ages of connections; default performance.now. */
  steadyNow?: () => number
  /** Where connections are counted. */
  counts?: ConnectionCounts
  /** Writes requests and reads responses; default our own. */
  client?: HttpClient
}

/** The names that WEBHOOK_CLIENT takes. undici is loaded only where it is chosen: it takes 30 MB. */
export const httpClients = {
  direct: () => Promise.resolve<HttpClient>(DirectConnection),
  undici: async (): Promise<HttpClient> => (await import('./undici/undici-connection.ts')).UndiciConnection,
}

/** Sends webhooks as the settings allow it. */
export const transportOf = async (
  config: Config,
  {
    lookup,
    counts,
    keepsSuccesses,
  }: Pick<WebhookTransportOptions, 'lookup' | 'counts' | 'keepsSuccesses'> = {},
): Promise<WebhookTransport> => {
  await checkSourceAddresses(config.wayOut.sourceAddresses)
  return createWebhookTransport({
    client: await httpClients[config.webhookClient](),
    timeoutMs: config.webhookTimeoutMs,
    allowedNetworks: config.allowedNetworks,
    ca: config.webhookCa,
    proxyCa: config.webhookProxyCa,
    wayOut: config.wayOut,
    ...(lookup && { lookup }),
    ...(counts && { counts }),
    ...(keepsSuccesses && { keepsSuccesses }),
  })
}

/** Throws `usage` for one from which no connection can be made: every request would fail. */
async function checkSourceAddresses(addresses: readonly string[]): Promise<void> {
  for (const address of addresses) {
    const server = createServer()
    server.listen({ host: address, port: 0, exclusive: true })
    const error = await once(server, 'listening').then(
      () => null,
      (cause: Error) => cause,
    )
    server.close()
    if (error !== null)
      throw new PostriderError(
        'usage',
        `WEBHOOK_SOURCE_ADDRESS has ${address}, which this machine cannot connect from (${error.message}); it takes addresses of this machine`,
      )
  }
}

/**
 * Webhooks over HTTP/1.1.
 *
 * Certificates are always verified: NODE_TLS_REJECT_UNAUTHORIZED has no effect here.
 *
 * HTTP/2 is not offered, because it is slower where it matters (docs/performance.md). It also puts every request in
 * flight behind one connection's fate.
 */
export function createWebhookTransport(options: WebhookTransportOptions): WebhookTransport {
  const names = new NameLookup({ ...options.names, ...(options.lookup && { system: options.lookup }) })
  const guard = new AddressGuard(options.allowedNetworks, names)
  const steadyNow = options.steadyNow ?? (() => performance.now())
  const timeoutMs = options.timeoutMs ?? 5_000
  const trust = { servers: trustOf(options.ca), proxies: trustOf(options.proxyCa ?? null) }
  const ways = new WaysOut({ ...plainWayOut, ...options.wayOut }, { guard, names, trust, steadyNow })
  const parts = {
    openings: new Openings(steadyNow, timeoutMs),
    polls: new PollPhase(),
    steadyNow,
    counts: options.counts ?? new ConnectionCounts(),
  }

  const client = options.client ?? DirectConnection
  const origins = new Map<string, WebhookOrigin>()
  const withFree = new Set<WebhookOrigin>()
  let sweep: NodeJS.Timeout | undefined
  const originOf = (url: URL, ownProxy: string | null, tls: TlsLogin | null): WebhookOrigin => {
    const { proxy, dial } = ways.of(ownProxy)
    const name = [url.origin, proxy, ...(tls === null ? [] : [digestOf(tls)])].join(' ')
    let origin = origins.get(name)
    if (origin === undefined) {
      const secureContext = tls && secureContextOf(tls, options.ca)
      origin = new WebhookOrigin(url, client, { ...parts, dial }, secureContext, withFree, () => {
        origins.delete(name)
        if (origins.size === 0) sweep = void clearInterval(sweep)
      })
      origins.set(name, origin)
      sweep ??= setInterval(() => withFree.forEach((each) => each.closeOld()), 1_000).unref()
    }
    return origin
  }

  const endpoints = new Set<WebhookEndpoint>()
  let onEmpty: (() => void) | null = null
  const sources = new Map<string, { source: TokenSource; members: number }>()
  const sourceKey = ({ oauth, tls, proxy }: WebhookTarget): string => JSON.stringify([oauth, tls, proxy])
  const settings: EndpointOptions = {
    timeoutMs,
    keepsSuccesses: options.keepsSuccesses ?? false,
    deadlines: new Deadlines(),
    now: options.now ?? Date.now,
    originOf,
    tokensOf(target) {
      if (!target.oauth) return null
      const key = sourceKey(target)
      const known = sources.get(key) ?? {
        source: new TokenSource(target.oauth, target, open, steadyNow),
        members: 0,
      }
      sources.set(key, known)
      known.members++
      return known.source
    },
    leaveTokens(target) {
      if (!target.oauth) return
      const key = sourceKey(target)
      const known = sources.get(key)!
      if (--known.members > 0) return
      sources.delete(key)
      known.source.close()
    },
    refusal: (hostname) => guard.addressRefusal(hostname),
    onClosed(endpoint) {
      endpoints.delete(endpoint)
      if (endpoints.size === 0) onEmpty?.()
    },
  }

  const open = (target: WebhookTarget): WebhookEndpoint => {
    for (const url of [target.url, target.oauth?.tokenUrl]) {
      const protocol = url && new URL(url).protocol
      if (url && protocol !== 'http:' && protocol !== 'https:')
        throw new PostriderError('usage', `a webhook's URL begins with http or https, not ${protocol}`)
    }
    if (target.tls) checkLogin(target.tls)
    const endpoint = new WebhookEndpoint(target, settings)
    endpoints.add(endpoint)
    return endpoint
  }

  return {
    open,

    async close(graceMs) {
      for (const endpoint of [...endpoints]) endpoint.close()
      if (endpoints.size > 0) {
        const drained = Promise.withResolvers<void>()
        onEmpty = drained.resolve
        const timer = setTimeout(() => {
          for (const endpoint of [...endpoints]) endpoint.abort()
        }, graceMs)
        await drained.promise
        clearTimeout(timer)
      }
    },
  }
}

/**
 * Node's own roots (with the system's and NODE_EXTRA_CA_CERTS where Node is configured so) and those of `ca`. Undefined
 * stands for Node's own alone. Made once: parsing the roots takes some 10 ms, which tls.connect would spend on every
 * connection if it were given them as `ca`.
 */
const trustOf = (ca: string | null): SecureContext | undefined =>
  ca === null ? undefined : createSecureContext({ ca: [...getCACertificates('default'), ca] })

/** Throws where one of them does not load: before a request needs them, which is when the context of all roots is made. */
function checkLogin({ cert, key, ca }: TlsLogin): void {
  try {
    createSecureContext({ ...(cert !== null && key !== null && { cert, key }), ...(ca !== null && { ca }) })
  } catch (error) {
    throw new PostriderError(
      'usage',
      `its client certificate, key or own CA cannot be used: ${messageOf(error)}`,
    )
  }
}

/** Of a destination with something of its own, for its connections alone. It loads (`checkLogin`). */
function secureContextOf({ cert, key, ca: own }: TlsLogin, ca: string | null): SecureContext {
  const added = [ca, own].filter((each) => each !== null)
  return createSecureContext({
    ...(cert !== null && key !== null && { cert, key }),
    ...(added.length > 0 && { ca: [...getCACertificates('default'), ...added] }),
  })
}

/** Connections are shared by those that have the same. */
const digestOf = ({ cert, key, ca }: TlsLogin): string =>
  createHash('sha256')
    .update(JSON.stringify([cert, key, ca]))
    .digest('base64url')
