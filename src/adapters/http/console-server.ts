import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { fastify } from 'fastify'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { checked } from '../../console/api/check.ts'
import { apiDocument, apiPrefix } from '../../console/api/document.ts'
import { answerOf, refusal, RequestRefused } from '../../console/api/errors.ts'
import type { ApiAnswer, Operation } from '../../console/api/operation.ts'
import type { ConsoleServices } from '../../console/api/services.ts'
import type { Logger } from '../log.ts'
import { tokenCheck } from './bearer-token.ts'
import { checkContent, limitBodyTime, maxBodyBytes, paced, takeBodies } from './console-bodies.ts'
import { answerInLines } from './progress-lines.ts'
import { RefusedTokens } from './refused-tokens.ts'
import { badHttpHandler, closeServer, listen } from './serving.ts'

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

export interface ConsoleServer {
  /** The port that was got, when 0 was asked for. */
  port: number
  /**
   * Takes no more connections, finishes the requests in flight, and after `graceMs` breaks off what is left. Resolves
   * once no handler runs any more. Idempotent.
   */
  close(graceMs: number): Promise<void>
}

/** Of a list, in bytes a second: else few senders could keep all of its places for ever. */
const listRate = 10 << 10
/** A delivery's id, percent-encoded. */
const maxParamLength = 4_096
/** How long a request may wait for the settings to be read on, in ms. */
const catchUpMs = 5_000
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

/** Serves the admin API. Throws PostriderError 'local' for a port that cannot be had. */
export async function openConsoleServer(options: ConsoleServerOptions): Promise<ConsoleServer> {
  const { port, host, token, version, operations, counts, log } = options
  const { headMs = 10_000, idleMs = 60_000 } = options
  const app = fastify({
    bodyLimit: maxBodyBytes,
    connectionTimeout: idleMs,
    http: { headersTimeout: headMs, connectionsCheckingInterval: checkMs },
    routerOptions: { maxParamLength: maxParamLength },
    return503OnClosing: false,
    clientErrorHandler: badHttpHandler((code, message) => ({ code, message, fields: [] })),
    frameworkErrors: (_error, _request, reply) => void send(reply as FastifyReply, noRoute),
  })
  const stopping = new AbortController()
  const running = new Set<Promise<void>>()
  let closing: Promise<void> | null = null
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
  // Also on requests that came in before: else their connections would stay open until the grace has passed.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('Connection', 'close')
    done(null, payload)
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
        const handled = handle(operation, request, reply, { ...options, idleMs }, stopping.signal).finally(
          () => running.delete(handled),
        )
        running.add(handled)
        return handled.then(() => reply)
      },
    })
  await listen(app, { port, host, part: 'CONSOLE' })
  const close = async (graceMs: number) => {
    const force = setTimeout(() => stopping.abort(stopped), graceMs)
    // Those that are told to stop can still say so.
    await closeServer(app, graceMs + 1_000)
    clearTimeout(force)
    stopping.abort(stopped)
    refusedTokens.close()
    await Promise.allSettled(running)
  }
  return {
    port: (app.server.address() as AddressInfo).port,
    close: (graceMs) => (closing ??= close(graceMs)),
  }
}

const stopped = new RequestRefused(
  'unavailable',
  'the console is being stopped; repeat the request, it goes on where this one stopped',
)
const starting = refusal('unavailable', 'the console is starting, or waits for Kafka: see /readyz')
const bug = refusal('internal_error', 'the console failed; its log says why')
const noRoute = refusal(
  'not_found',
  `there is no such route; ${apiPrefix}/openapi.json names all that there are`,
)
const unauthorized = {
  missing: 'a token is needed: `Authorization: Bearer <ADMIN_TOKEN>`',
  wrong: 'the token is not the console’s ADMIN_TOKEN',
}

async function handle(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  { services, log, idleMs }: ConsoleServerOptions & { idleMs: number },
  stopping: AbortSignal,
): Promise<void> {
  const { headers, raw } = request
  const contentType = headers['content-type']?.split(';')[0]!.trim().toLowerCase() ?? null
  checkContent(operation, contentType, headers['content-encoding'])
  const { streams } = operation
  const { params, query, body } = checked(operation, {
    params: request.params,
    query: request.query,
    body: streams ? undefined : request.body,
  })
  const found = services()
  if (found === null) return send(reply, starting)
  const left = new AbortController()
  reply.raw.once('close', () => left.abort())
  const gone = AbortSignal.any([left.signal, stopping])
  // What another console has changed a moment ago counts here too.
  await found.settings.catchUp(AbortSignal.any([gone, AbortSignal.timeout(catchUpMs)]))
  const answer = await operation.handle(
    {
      params,
      query,
      body,
      lines: streams ? paced(request.body as Readable, { graceMs: idleMs, perSecond: listRate }) : nothing(),
      contentType,
      ifMatch: headers['if-match'] ?? null,
      idempotencyKey: textOf(headers['idempotency-key']),
      stopping,
      gone,
    },
    found,
  )
  if (!('run' in answer)) return send(reply, answer)
  // It may now take as long as it does.
  if (raw.complete) raw.socket.setTimeout(0)
  else raw.once('end', () => raw.socket.setTimeout(0))
  const { status } = operation.success
  if (/\bapplication\/x-ndjson\b/.test(headers.accept ?? ''))
    await answerInLines(reply.code(status), answer.run, (error) => {
      const { body } = answerOf(error) ?? bug
      if (body === bug.body) log.error({ err: error, operation: operation.id }, 'a request failed by a bug')
      return body
    })
  else {
    const body = await answer.run(() => {})
    send(reply, { status, headers: answer.headers?.(body) ?? {}, body })
  }
}

/** The answer to what Fastify or a handler threw; null for a bug. Fastify's own messages may quote the body. */
function answerTo(error: unknown): ApiAnswer | null {
  const { code, statusCode } = error as { code?: string; statusCode?: number }
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return refusal('body_too_large', `the body has more than ${maxBodyBytes >> 20} MB`)
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return refusal('unsupported_media_type', 'the Content-Type must be application/json')
  }
  const answer = answerOf(error)
  if (answer) return answer
  return statusCode === 400 ? refusal('invalid_request', 'the body is not valid JSON') : null
}

function notFound(operations: readonly Operation[], request: FastifyRequest, reply: FastifyReply): void {
  const path = pathOf(request)
  const allowed = operations.filter(({ path: template }) =>
    new RegExp(`^${apiPrefix}${template.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )
  if (allowed.length === 0) return send(reply, noRoute)
  const methods = allowed.map(({ method }) => method).join(', ')
  reply.header('Allow', methods)
  send(reply, refusal('method_not_allowed', `there is ${methods} at this path`))
}

function send(reply: FastifyReply, { status, headers, body }: ApiAnswer): void {
  reply
    .code(status)
    .headers({ ...headers, 'Content-Type': 'application/json; charset=utf-8' })
    .send(`${JSON.stringify(body)}\n`)
}

const operationOf = (request: FastifyRequest): Operation | undefined =>
  (request.routeOptions.config as { operation?: Operation }).operation
const idOf = (request: FastifyRequest): string | undefined => (request.params as { id?: string } | null)?.id
const pathOf = (request: FastifyRequest): string => request.url.split('?')[0]!
const textOf = (header: string | string[] | undefined): string | null =>
  (Array.isArray(header) ? header.join(',') : header) ?? null

async function* nothing(): AsyncGenerator<Uint8Array> {}
