import type { AddressInfo } from 'node:net'
import { fastify } from 'fastify'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { bodyTooLarge, refusal } from '../../collector/answers.ts'
import type { Answer } from '../../collector/answers.ts'
import type { CollectRequest } from '../../collector/collector.ts'
import { Hold } from '../../collector/room.ts'
import type { Room } from '../../collector/room.ts'
import { pixelRoutes, postRoutes } from '../../collector/routes.ts'
import type { Route } from '../../collector/routes.ts'
import { mostBodyBytes } from '../../core/tracking-request.ts'
import type { Logger } from '../log.ts'
import { BodyRefused, readBody } from './body.ts'
import { ClientAddress } from './client-address.ts'
import { allowOrigin, preflight } from './cors.ts'
import { badHttpHandler, closeServer, listen } from './serving.ts'
import { basicKey, bearerKey } from './write-key.ts'

export interface CollectorServerOptions {
  port: number
  /** All interfaces unless given. */
  host?: string
  /** CIDRs of proxies whose X-Forwarded-For is believed; none unless given. */
  trustedProxies?: readonly string[]
  room: Room
  collect(request: CollectRequest): Promise<Answer>
  log: Logger
  /** A request that is not complete by then is cut off, in ms. */
  requestMs?: number
}

export interface CollectorServer {
  /** The port that was got, when 0 was asked for. */
  port: number
  /** Takes no more connections, answers the requests under way, cuts off what is left after `graceMs`. Idempotent. */
  close(graceMs: number): Promise<void>
}

/** A head that is not complete by then is cut off, in ms. */
const headMs = 10_000
/** How often requests that take too long are looked for, in ms. */
const checkMs = 500
/** Of a pixel's `data`; Node takes no longer head anyway. */
const mostPixelBytes = 16 << 10

/** A transparent pixel. */
const gif = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64')

/** Serves the tracking API. Throws PostriderError 'local' for a port that cannot be had. */
export async function openCollectorServer(options: CollectorServerOptions): Promise<CollectorServer> {
  const { port, host = '::', log, requestMs = 30_000 } = options
  const app = fastify({
    // Each request has its own: a client on keep-alive that is slow once is not cut off for good.
    requestTimeout: requestMs,
    http: { headersTimeout: Math.min(headMs, requestMs), connectionsCheckingInterval: checkMs },
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    // Those that come over open connections while it closes are served too, and told to close.
    return503OnClosing: false,
    clientErrorHandler: badHttpHandler((code, message) => ({ success: false, code, message })),
    frameworkErrors: (_error, _request, reply) => void send(reply as FastifyReply, noRoute),
  })
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
  let closing: Promise<void> | null = null
  // Also on requests that came in before: else their connections would stay open until the grace has passed.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('Connection', 'close')
    done(null, payload)
  })
  addRoutes(app, options)
  await listen(app, { port, host, variable: 'COLLECTOR_PORT' })
  return {
    port: (app.server.address() as AddressInfo).port,
    close: (graceMs) => (closing ??= closeServer(app, graceMs)),
  }
}

function addRoutes(
  app: FastifyInstance,
  { room, collect, trustedProxies = [] }: CollectorServerOptions,
): void {
  const clientAddress = new ClientAddress(trustedProxies)
  const answer = async (
    request: FastifyRequest,
    reply: FastifyReply,
    route: Route,
  ): Promise<Answer | null> => {
    const hold = new Hold(room)
    reply.raw.once('close', () => hold.release())
    // Not to be had any more once the sender has gone away.
    const ip = clientAddress.of(request.socket.remoteAddress ?? '', forwardedFor(request))
    try {
      const isPixel = request.method === 'GET'
      const { authorization } = request.headers
      return await collect({
        route,
        text: isPixel ? pixelText(request) : await readBody(request.raw, hold, mostBodyBytes),
        basicKey: basicKey(authorization),
        bearerKey: bearerKey(authorization),
        queryKey: route.isClientSide ? queryText(request, 'writeKey') : null,
        ip,
        hold,
      })
    } catch (error) {
      if (error instanceof BodyRefused) return error.answer
      throw error
    }
  }
  for (const [url, route] of postRoutes) {
    app.route({
      method: ['POST', 'PUT'],
      url,
      handler: async (request, reply) => {
        const answered = await answer(request, reply, route)
        if (answered === null) reply.hijack()
        else send(reply, answered)
        return reply
      },
    })
  }
  app.get<{ Params: { type: string } }>('/v1/pixel/:type', async (request, reply) => {
    const route = pixelRoutes.get(request.params.type.toLowerCase())
    const answered = route ? await answer(request, reply, route) : noRoute
    if (answered?.status === 200)
      reply.headers({ 'Content-Type': 'image/gif', 'Cache-Control': 'no-store' }).send(gif)
    else send(reply, answered!)
    return reply
  })
}

const noRoute = refusal(
  404,
  'not_found',
  'there are POST /v1/identify, track, page, screen, group, alias, batch and import, their first letters, and GET /v1/pixel/{type}',
)

function send(reply: FastifyReply, { status, body, retryAfter }: Answer): void {
  reply.code(status).header('Content-Type', 'application/json; charset=utf-8')
  if (retryAfter !== null) reply.header('Retry-After', String(retryAfter))
  reply.send(body)
}

/** Node joins several into one, in their order. */
const forwardedFor = (request: FastifyRequest): string | undefined =>
  request.headers['x-forwarded-for'] as string | undefined

/** The last value of a parameter of the query. */
function queryText(request: FastifyRequest, name: string): string | null {
  const value = (request.query as Record<string, string | string[] | undefined>)[name]
  return (Array.isArray(value) ? value.at(-1) : value) || null
}

/** The call of `?data=`, in base64 of either alphabet; a `+` that was not escaped has come as a space. */
function pixelText(request: FastifyRequest): string {
  const data = (queryText(request, 'data') ?? '').replaceAll(' ', '+')
  if (data.length > mostPixelBytes) throw new BodyRefused(bodyTooLarge(mostPixelBytes))
  return Buffer.from(data, 'base64').toString('utf8')
}
