import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  refusal,
  sdkSourceDisabled,
  unavailable,
  unknownHost,
  writeKeyMissing,
  writeKeyNotFound,
  type CollectAnswer,
} from '../../collector/answers.ts'
import type { Collector } from '../../collector/collector.ts'
import { rudderSourceConfig, segmentSettings, type PublicAddress } from '../../collector/sdk-documents.ts'
import type { Source } from '../../core/settings/settings.ts'
import type { Logger } from '../log.ts'
import { basicKey } from './authorization.ts'
import { readBrowserSdk, type BrowserSdk, type ServedScript } from './browser-sdk.ts'
import type { ClientAddress } from './client-address.ts'
import { endUnlessTaken } from './serving.ts'

/** A name or an address, and a port: what is neither would be a link of the sender's making. */
const hostForm = /^(?:[a-z0-9](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i

/**
 * Where the sender reached the collector: COLLECTOR_URL, else what the request says. Null where it says nothing that could
 * be. Whether TLS ended before it is believed of trusted proxies only.
 */
function publicAddress(
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

export interface SdkRoutesOptions {
  /** Behind it; null while there is none. */
  collector(): Pick<Collector, 'sourceOf'> | null
  clientAddress: ClientAddress
  /** COLLECTOR_URL; null where it is not set. */
  collectorUrl: string | null
  /** Whether the SDK for browsers is served, too. */
  servesBrowserSdk: boolean
  log: Logger
  send(reply: FastifyReply, answer: CollectAnswer): void
}

/** What follows settings is asked for again after ten minutes; what a file's name says never changes. */
const aWhile = 'public, max-age=600'
const forEver = 'public, max-age=31536000, immutable'
/** A connection whose script is not taken by then ends. */
const takenMs = 60_000

/** What SDKs ask for by themselves, before they send or beside it. */
export function addSdkRoutes(app: FastifyInstance, options: SdkRoutesOptions): void {
  const { collectorUrl, clientAddress, send } = options
  const addressOf = (request: FastifyRequest) => publicAddress(request, collectorUrl, clientAddress)
  /** Null once it was refused. */
  const sourceFor = async (
    key: string | null,
    reply: FastifyReply,
    { isDisabledToo = false } = {},
  ): Promise<Source | null> => {
    const found = await sourceOf(options.collector(), key)
    if (!('status' in found) && (found.enabled || isDisabledToo)) return found
    // A key that was just made, and a source that was just enabled, are not refused for longer than this.
    reply.header('Cache-Control', 'no-store')
    send(reply, 'status' in found ? found : sdkSourceDisabled(found.id))
    return null
  }
  const document = (
    request: FastifyRequest,
    reply: FastifyReply,
    make: (address: PublicAddress) => object,
  ): FastifyReply => {
    const address = addressOf(request)
    if (address === null) send(reply, unknownHost)
    else
      reply
        .headers({ 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': aWhile })
        .send(JSON.stringify(make(address)))
    return reply
  }

  // Segment's SDKs for phones leave out the version where their host has none.
  for (const url of ['/v1/projects/:writeKey/settings', '/projects/:writeKey/settings'])
    app.get<{ Params: { writeKey: string } }>(url, async (request, reply) => {
      // Also where no page asked: a cache would give a page what says nothing of its origin.
      reply.header('Vary', 'Origin')
      const source = await sourceFor(request.params.writeKey, reply)
      return source ? document(request, reply, (address) => segmentSettings(source, address)) : reply
    })
  app.get<{ Querystring: { writeKey?: unknown } }>('/sourceConfig', async (request, reply) => {
    const inQuery = request.query.writeKey
    const key = basicKey(request.headers.authorization) ?? (typeof inQuery === 'string' ? inQuery : null)
    const source = await sourceFor(key, reply, { isDisabledToo: true })
    // The key may be in the head: no cache may take one source's answer for another's.
    if (source) reply.header('Vary', 'Authorization, Origin')
    return source ? document(request, reply, (address) => rudderSourceConfig(source, address)) : reply
  })
  // How an SDK is, which concerns nobody here.
  app.post('/v1/m', async (_request, reply) =>
    reply.header('Content-Type', 'application/json; charset=utf-8').send('{"success":true}'),
  )
  if (options.servesBrowserSdk) addBrowserSdk(app, options.log, sourceFor)
}

async function sourceOf(
  collector: Pick<Collector, 'sourceOf'> | null,
  key: string | null,
): Promise<Source | CollectAnswer> {
  if (key === null || key === '') return writeKeyMissing
  const found = collector === null ? 'unknown' : await collector.sourceOf(key)
  if (found === 'unknown') return unavailable
  return found === 'none' ? writeKeyNotFound : found
}

function addBrowserSdk(
  app: FastifyInstance,
  log: Logger,
  sourceFor: (key: string, reply: FastifyReply) => Promise<Source | null>,
): void {
  let reading: Promise<BrowserSdk> | null = null
  const sdk = async (): Promise<BrowserSdk> => {
    try {
      return await (reading ??= readBrowserSdk())
    } catch (error) {
      reading = null
      log.error({ err: error }, 'the SDK for browsers cannot be served')
      throw error
    }
  }
  const noSuchScript = refusal(404, 'not_found', 'there is no such script')

  app.get<{ Params: { writeKey: string; file: string } }>(
    '/analytics.js/v1/:writeKey/:file',
    async (request, reply) => {
      const { writeKey, file } = request.params
      if (!/^analytics(\.min)?\.js$/i.test(file)) return sendScript(request, reply, undefined)
      if ((await sourceFor(writeKey, reply)) === null) return reply
      reply.header('Cache-Control', aWhile)
      return sendScript(request, reply, (await sdk()).script)
    },
  )
  app.get<{ Params: { file: string } }>('/analytics-next/bundles/:file', async (request, reply) => {
    const script = (await sdk()).chunks.get(request.params.file)
    if (script) reply.header('Cache-Control', forEver)
    return sendScript(request, reply, script)
  })

  function sendScript(
    { headers }: FastifyRequest,
    reply: FastifyReply,
    script: ServedScript | undefined,
  ): FastifyReply {
    if (script === undefined) {
      reply.code(noSuchScript.status).header('Content-Type', 'application/json; charset=utf-8')
      return reply.send(noSuchScript.body)
    }
    const takesZipped = /\bgzip\b/.test(String(headers['accept-encoding'] ?? ''))
    reply.headers({
      'Content-Type': 'text/javascript; charset=utf-8',
      // Pages that are isolated from other origins load it, too.
      'Cross-Origin-Resource-Policy': 'cross-origin',
      'X-Content-Type-Options': 'nosniff',
      ETag: script.etag,
      Vary: 'Accept-Encoding, Origin',
    })
    if (headers['if-none-match'] === script.etag) return reply.code(304).send()
    if (takesZipped) reply.header('Content-Encoding', 'gzip')
    reply.send(takesZipped ? script.zipped : script.plain)
    endUnlessTaken(reply.raw, takenMs)
    return reply
  }
}
