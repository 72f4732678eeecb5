import { isUtf8 } from 'node:buffer'
import { fastify } from 'fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { bodyTooLarge, refusal, unavailable } from '../../collector/answers.ts'
import type { CollectAnswer } from '../../collector/answers.ts'
import type { Collector } from '../../collector/collector.ts'
import { Reservation } from '../../collector/request-budget.ts'
import type { RequestBudget } from '../../collector/request-budget.ts'
import { pixelRoutes, postRoutes } from '../../collector/routes.ts'
import type { CallRoute } from '../../collector/routes.ts'
import { isTraceparent } from '../../core/delivery/trace-context.ts'
import { maxBodyBytes } from '../../core/call/tracking-request.ts'
import type { Logger } from '../log.ts'
import { BodyRefused, readBody } from './body.ts'
import { ClientAddress, senderOf } from './client-address.ts'
import { allowOrigin, preflight } from './cors.ts'
import { oneRequestAtATime } from './pipelining.ts'
import { addSdkRoutes } from './sdk-routes.ts'
import { badHttpHandler, endUnlessTaken, serve } from './serving.ts'
import type { HttpServer } from './serving.ts'
import { basicKey, bearerKey } from './authorization.ts'

export interface CollectorServerOptions {
  port: number
  host: string
  /** CIDRs of proxies whose X-Forwarded-For is believed; none unless given. */
  trustedProxies?: readonly string[]
  budget: RequestBudget
  /** Behind it; null while there is none. */
  collector(): Pick<Collector, 'admit' | 'collect' | 'bodyRefused' | 'sourceOf'> | null
  /** Where senders reach it; unless given, where a request says that it did. */
  collectorUrl?: string | null
  /** Whether the SDK for browsers is served, too; it is unless this says no. */
  servesBrowserSdk?: boolean
  log: Logger
  /** A request that is not complete by then is cut off, in ms. */
  requestMs?: number
  /** A connection whose answer is not taken by then ends, in ms. */
  answerMs?: number
}

/** A head that is not complete by then is cut off, in ms. */
const headMs = 10_000
/** How often requests that take too long are looked for, in ms. */
const checkMs = 500
/** Of a pixel's `data`. */
const maxPixelBytes = 16 << 10
/** Of a head: a pixel's data and 8 KB beside it. */
const maxHeadBytes = 24 << 10

/** The longest write key: SDKs ask for documents with theirs in the path. */
const maxParamLength = 128

/** A transparent pixel. */
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

/** Serves the tracking API. Throws PostriderError 'local' for a port that cannot be had. */
export async function openCollectorServer(options: CollectorServerOptions): Promise<HttpServer> {
  const { port, host, log, requestMs = 30_000 } = options
  const app = fastify({
    // Each request has its own: a client on keep-alive that is slow once is not cut off for good.
    requestTimeout: requestMs,
    http: {
      headersTimeout: Math.min(headMs, requestMs),
      connectionsCheckingInterval: checkMs,
      maxHeaderSize: maxHeadBytes,
    },
    routerOptions: {
      ...{ caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
      maxParamLength,
    },
    // Requests over open connections while it closes are served too, and their connections end.
    return503OnClosing: false,
    // As the answer to a body that did not come in time.
    clientErrorHandler: badHttpHandler(
      (code, message) => ({ success: false, code, message }),
      '503 Service Unavailable\r\nRetry-After: 1',
    ),
    frameworkErrors: (_error, _request, reply) => void send(reply as FastifyReply, noRoute),
  })
  oneRequestAtATime(app)
  // Whatever the type says, the body is JSON; Fastify would refuse types that make no sense.
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', (request, reply, done) => {
    allowOrigin(request, reply)
    if (request.method === 'OPTIONS') return preflight(request, reply)
    request.raw.headers['content-type'] = 'application/json'
    done()
  })
  app.addContentTypeParser('application/json', (_request, payload, done) => done(null, payload))
  app.setNotFoundHandler((_request, reply) => send(reply, noRoute))
  app.setErrorHandler((error, request, reply) => {
    log.error({ err: error, path: request.url.split('?')[0] }, 'a request failed by a bug')
    send(reply, refusal(500, 'internal_error', 'the collector failed; send this again later'))
  })
  addRoutes(app, options)
  return serve(app, { port, host, part: 'COLLECTOR' })
}

function addRoutes(
  app: FastifyInstance,
  {
    budget,
    collector,
    trustedProxies = [],
    collectorUrl = null,
    servesBrowserSdk = true,
    answerMs = 10_000,
    log,
  }: CollectorServerOptions,
): void {
  const clientAddress = new ClientAddress(trustedProxies)
  addSdkRoutes(app, { collector, clientAddress, collectorUrl, servesBrowserSdk, log, send })
  /** Null when the sender has gone away. */
  const answerTo = async (request: FastifyRequest, route: CallRoute): Promise<CollectAnswer | null> => {
    const behind = collector()
    if (behind === null) return unavailable
    // Not to be had any more once the sender has gone away.
    const ip = clientAddress.of(request.socket.remoteAddress ?? '', forwardedFor(request))
    const sender = senderOf(ip)
    const { authorization } = request.headers
    const keys = {
      basicKey: basicKey(authorization),
      bearerKey: bearerKey(authorization),
      queryKey: route.isClientSide ? queryText(request, 'writeKey') : null,
    }
    let source = behind.admit(keys, route, sender)
    if (source instanceof Promise) source = await source
    if (source !== null && 'status' in source) return source
    const reservation = new Reservation(budget, source?.id ?? null, sender)
    try {
      const isPixel = request.method === 'GET'
      const text = isPixel ? pixelText(request) : await readBody(request.raw, reservation, maxBodyBytes)
      const userAgent = request.headers['user-agent'] ?? ''
      const traceparent = traceparentOf(request)
      return await behind.collect({ keys, route, text, ip, sender, userAgent, traceparent, reservation })
    } catch (error) {
      if (!(error instanceof BodyRefused)) throw error
      if (error.answer) behind.bodyRefused(source, route, error.answer)
      return error.answer
    } finally {
      // Not only when the sender has taken the answer: a sender that does not read would keep it from others.
      reservation.release()
    }
  }
  for (const [url, route] of postRoutes) {
    app.route({
      method: ['POST', 'PUT'],
      url,
      handler: async (request, reply) => {
        const answered = await answerTo(request, route)
        if (answered === null) return reply.hijack()
        send(reply, answered)
        endUnlessTaken(reply.raw, answerMs)
        return reply
      },
    })
  }
  app.get<{ Params: { type: string } }>('/v1/pixel/:type', async (request, reply) => {
    const route = pixelRoutes.get(request.params.type.toLowerCase())
    const answered = route ? await answerTo(request, route) : noRoute
    if (answered?.status === 200)
      reply.headers({ 'Content-Type': 'image/gif', 'Cache-Control': 'no-store' }).send(gif)
    else send(reply, answered!)
    endUnlessTaken(reply.raw, answerMs)
    return reply
  })
}

const noRoute = refusal(
  404,
  'not_found',
  'there are POST /v1/identify, track, page, screen, group, alias, batch and import, their first letters, and GET /v1/pixel/{type}',
)

function send(reply: FastifyReply, { status, body, retryAfter }: CollectAnswer): void {
  reply.code(status).header('Content-Type', 'application/json; charset=utf-8')
  if (retryAfter !== null) reply.header('Retry-After', String(retryAfter))
  reply.send(body)
}

/** Node joins several into one, in their order. */
const forwardedFor = (request: FastifyRequest): string | undefined =>
  request.headers['x-forwarded-for'] as string | undefined

/** One that is not valid is ignored, and so are several, which Node joins. */
function traceparentOf({ headers: { traceparent } }: FastifyRequest): string | null {
  return typeof traceparent === 'string' && isTraceparent(traceparent) ? traceparent : null
}

/** The last value of a parameter of the query. */
function queryText(request: FastifyRequest, name: string): string | null {
  const value = (request.query as Record<string, string | string[] | undefined>)[name]
  return (Array.isArray(value) ? value.at(-1) : value) || null
}

/**
 * The call of `?data=`, in base64 of either alphabet; a `+` that was not escaped has come as a space. `btoa` of a page
 * makes Latin-1 of a text: read as UTF-8, two users' ids could become one.
 */
function pixelText(request: FastifyRequest): string {
  const data = (queryText(request, 'data') ?? '').replaceAll(' ', '+')
  if (data.length > maxPixelBytes) throw new BodyRefused(bodyTooLarge(maxPixelBytes))
  const bytes = Buffer.from(data, 'base64')
  return bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1')
}
