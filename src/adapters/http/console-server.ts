import { fastify } from 'fastify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { apiDocument, apiPrefix } from '../../console/api/document.ts'
import { refusal } from '../../console/api/errors.ts'
import type { Operation } from '../../console/api/operation.ts'
import type { ConsoleServices } from '../../console/api/services.ts'
import type { Logger } from '../log.ts'
import { tokenCheck } from './authorization.ts'
import { answerTo, bug, noRoute, notFound, pathOf, send, stopped, unauthorized } from './console-answers.ts'
import { limitBodyTime, maxBodyBytes, takeBodies } from './console-bodies.ts'
import { answerRequest } from './console-request.ts'
import { RefusedTokens } from './refused-tokens.ts'
import { badHttpHandler, closeServer, serve } from './serving.ts'
import type { HttpServer } from './serving.ts'

export interface ConsoleServerOptions {
  port: number
  host: string
  /** ADMIN_TOKEN. */
  token: string
  /** Of Postrider, for the document. */
  version: string
  operations: readonly Operation[]
  /** Null while there is nothing to work with yet. */
  services(): ConsoleServices | null
  /** Learns of each request, by its operation (null: there is none) and the answer's status. */
  counts: { request(operationId: string | null, status: number): void }
  log: Logger
  /** A head that is not complete by then is cut off, in ms. */
  headMs?: number
  /**
   * Connections that send or read nothing for that long within a request are closed, in ms; likewise a JSON body that is
   * not complete by then. A list must come at its rate, with so much grace.
   */
  idleMs?: number
}

/** A delivery's id, percent-encoded. */
const maxParamLength = 4_096
/** How often slow heads are looked for, in ms. */
const checkMs = 1_000

/** No browser should make anything of an answer, or keep it. */
const securityHeaders = {
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
}

/**
 * Serves the admin API; once it is closed no handler runs any more. Throws PostriderError 'local' for a port that
 * cannot be had.
 */
export async function openConsoleServer(options: ConsoleServerOptions): Promise<HttpServer> {
  const { port, host, token, version, operations, counts, log } = options
  const { headMs = 10_000, idleMs = 60_000 } = options
  const app = fastify({
    bodyLimit: maxBodyBytes,
    connectionTimeout: idleMs,
    http: { headersTimeout: headMs, connectionsCheckingInterval: checkMs },
    routerOptions: { maxParamLength },
    return503OnClosing: false,
    clientErrorHandler: badHttpHandler((code, message) => ({ code, message, fields: [] })),
    frameworkErrors: (_error, _request, reply) => void send(reply as FastifyReply, noRoute),
  })
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  const document = JSON.stringify(apiDocument(operations, version))
  const documentUrl = `${apiPrefix}/openapi.json`
  const judge = tokenCheck(token)
  const refusedTokens = new RefusedTokens(log)

  takeBodies(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(securityHeaders)
    // The document says nothing of this deployment.
    if (request.routeOptions.url === documentUrl) return
    const verdict = judge(request.headers.authorization)
    if (verdict === 'right') {
      if (!operationOf(request)?.streams) limitBodyTime(app, request, idleMs)
      return
    }
    if (!(await refusedTokens.refused(request.ip, pathOf(request), verdict))) {
      request.raw.destroy()
      return reply.hijack()
    }
    const error = verdict === 'wrong' ? ', error="invalid_token"' : ''
    // Its body is not read.
    reply.headers({ 'WWW-Authenticate': `Bearer realm="postrider"${error}`, Connection: 'close' })
    send(reply, refusal('unauthorized', unauthorized[verdict]))
    return reply
  })
  app.addHook('onResponse', (request, reply, done) => {
    const operation = operationOf(request)
    counts.request(operation?.id ?? null, reply.statusCode)
    if (operation && request.method !== 'GET' && request.method !== 'HEAD')
      log.info(
        { operation: operation.id, id: idOf(request), status: reply.statusCode, ip: request.ip },
        'a change was asked for',
      )
    done()
  })
  app.setNotFoundHandler((request, reply) => notFound(operations, request, reply))
  app.setErrorHandler((error, request, reply) => {
    const answer = answerTo(error)
    // A client that went away gets no answer, and nothing is logged.
    if (!answer && !reply.raw.destroyed)
      log.error({ err: error, path: pathOf(request) }, 'a request failed by a bug')
    if (!request.raw.complete) reply.header('Connection', 'close')
    send(reply, answer ?? bug)
  })
  app.get(documentUrl, (_request, reply) => reply.type('application/json; charset=utf-8').send(document))
  for (const operation of operations)
    app.route({
      method: operation.method,
      url: apiPrefix + operation.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { operation },
      handler: (request, reply) => {
        const handled = answerRequest(
          operation,
          request,
          reply,
          { ...options, idleMs },
          stopping.signal,
        ).finally(() => running.delete(handled))
        running.add(handled)
        return handled.then(() => reply)
      },
    })
  return serve(app, { port, host, part: 'CONSOLE' }, async (graceMs) => {
    const force = setTimeout(() => stopping.abort(stopped), graceMs)
    // Requests that are broken off can still answer so.
    await closeServer(app, graceMs + 1_000)
    clearTimeout(force)
    stopping.abort(stopped)
    refusedTokens.close()
    await Promise.allSettled(running)
  })
}

const operationOf = (request: FastifyRequest): Operation | undefined =>
  (request.routeOptions.config as { operation?: Operation }).operation
const idOf = (request: FastifyRequest): string | undefined => (request.params as { id?: string } | null)?.id
