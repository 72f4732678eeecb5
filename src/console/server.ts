import { fastify, type FastifyReply, type FastifyRequest } from 'fastify'
import { oneRequestAtATime } from '../adapters/http/pipelining.ts'
import type { IdentityProvider } from '../adapters/http/identity-provider.ts'
import { badHttpHandler, closeServer, serve, type HttpServer } from '../adapters/http/serving.ts'
import type { Logger } from '../adapters/log.ts'
import type { CompanyLogin } from '../config/company-login.ts'
import { LookAgain } from '../look-again.ts'
import type { ApiAnswer, Caller, Operation } from '../operators/operation.ts'
import type { ConsoleServices } from '../operators/services.ts'
import { AccessCheck, RefusedTokens } from './access.ts'
import { answerTo, bug, noPath, noRoute, notFound, pathOf, send, stopped } from './answers.ts'
import { limitBodyTime, maxBodyBytes, takeBodies } from './bodies.ts'
import { apiDocument, apiPrefix } from './document.ts'
import { serveCompanyLogin } from './page/company-login.ts'
import { answerPage, isPagePath, serveAssets } from './page/serve-page.ts'
import type { LoginCode } from './page/session.ts'
import { answerRequest, RunningRequests } from './request.ts'

export interface ConsoleServerOptions {
  port: number
  host: string
  /** ADMIN_TOKEN. */
  token: string
  /** Of Postrider, for the document. */
  version: string
  /** Logs in once; null, or not given, for no such thing. */
  loginCode?: LoginCode | null
  /** How people log in without a token; null, or not given, for not at all. */
  companyLogin?: { settings: CompanyLogin; provider: IdentityProvider } | null
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
   * not complete by then, and a stream of which nothing is read while something waits. A list must come at its rate, with so much grace.
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
  const { headMs = 10_000, idleMs = 60_000, loginCode = null, companyLogin = null } = options
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
  /** Streams end at once: they have no end of their own. */
  const closing = new AbortController()
  const answers = new Set<Promise<void>>()
  const running = new RunningRequests()
  // A fifth of a second's work, which no start has to wait for.
  let document: string | null = null
  const callers = new WeakMap<FastifyRequest, Caller>()
  const refusedTokens = new RefusedTokens(log)
  const again = new LookAgain((signal) => options.services()!.settings.catchUp(signal))
  const access = new AccessCheck({
    adminToken: token,
    lookAgain: () => again.look(),
    tokens: () => options.services()?.settings.state.tokens ?? null,
    loginCode,
    companyLogin: companyLogin?.settings ?? null,
    refused: ({ ip }, why) => refusedTokens.refused(ip, `${apiPrefix}/session`, why),
  })

  takeBodies(app)
  oneRequestAtATime(app)
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(securityHeaders)
    if (!request.url.startsWith('/')) return refuse(reply, noPath)
    const operation = operationOf(request)
    if (operation === null && isOpen(request)) return
    const admission = await access.admitLater(operation, request)
    if (admission.caller && !operation?.isOpen) callers.set(request, admission.caller)
    if (admission.answer === null) {
      if (!operation?.streams) limitBodyTime(app, request, idleMs)
      return
    }
    const { refused } = admission
    if (refused !== null && !(await refusedTokens.refused(request.ip, pathOf(request), refused))) {
      request.raw.destroy()
      return reply.hijack()
    }
    return refuse(reply, admission.answer)
  })
  app.addHook('onResponse', (request, reply, done) => {
    const operation = operationOf(request)
    counts.request(operation?.id ?? null, reply.statusCode)
    if (operation && request.method !== 'GET' && request.method !== 'HEAD')
      log.info(
        {
          operation: operation.id,
          id: idOf(request),
          status: reply.statusCode,
          ip: request.ip,
          token: callers.get(request)?.name,
        },
        'a change was asked for',
      )
    done()
  })
  app.setNotFoundHandler(async (request, reply) => {
    const path = pathOf(request)
    if (!isPagePath(path)) notFound(operations, request, reply)
    else if (!(await answerPage(request, reply, path))) send(reply, noRoute)
    return reply
  })
  app.setErrorHandler((error, request, reply) => {
    const answer = answerTo(error)
    // A client that went away gets no answer, and nothing is logged.
    if (!answer && !reply.raw.destroyed)
      log.error({ err: error, path: pathOf(request) }, 'a request failed by a bug')
    if (!request.raw.complete) reply.header('Connection', 'close')
    send(reply, answer ?? bug)
  })
  app.get(`${apiPrefix}/openapi.json`, { config: { isOpen: true } }, (_request, reply) =>
    reply
      .type('application/json; charset=utf-8')
      .send((document ??= JSON.stringify(apiDocument(operations, version)))),
  )
  serveAssets(app, (reply) => send(reply, noRoute))
  if (companyLogin)
    serveCompanyLogin(app, {
      ...companyLogin,
      adminToken: token,
      begin: (name, value, now) => access.cookieOfPerson(name, value, now),
      refused: (request) => refusedTokens.refused(request.ip, pathOf(request), 'wrong'),
      log,
    })
  for (const operation of operations)
    app.route({
      method: operation.method,
      url: apiPrefix + operation.path.replace(/\{(\w+)\}/g, ':$1'),
      config: { operation },
      handler: (request, reply) => {
        const session = access.gateFor(request)
        const answering = { ...options, idleMs, access, running, session, closing: closing.signal }
        const handled = answerRequest(operation, request, reply, answering, stopping.signal).finally(() =>
          answers.delete(handled),
        )
        answers.add(handled)
        return handled.then(() => reply)
      },
    })
  return serve(app, { port, host, part: 'CONSOLE' }, async (graceMs) => {
    closing.abort(stopped)
    const force = setTimeout(() => stopping.abort(stopped), graceMs)
    // Requests that are broken off can still answer so.
    await closeServer(app, graceMs + 1_000)
    clearTimeout(force)
    stopping.abort(stopped)
    refusedTokens.close()
    await Promise.allSettled(answers)
  })
}

/** Answers before the body is read, which ends the connection. */
function refuse(reply: FastifyReply, answer: ApiAnswer): FastifyReply {
  reply.header('Connection', 'close')
  send(reply, answer)
  return reply
}

/** What the router knows of a route; one with neither takes any token. */
interface RouteConfig {
  operation?: Operation
  /** Says nothing of this deployment: the document, the page's files, and the ways to log in. */
  isOpen?: true
}

const configOf = (request: FastifyRequest) => request.routeOptions.config as RouteConfig
const operationOf = (request: FastifyRequest): Operation | null => configOf(request).operation ?? null

/**
 * Whether a request without an operation needs no token. Only where nothing was routed, and nothing will be done, its path
 * decides: it is the page's, which shows nothing of the deployment, or not below /api.
 */
const isOpen = (request: FastifyRequest): boolean =>
  request.is404 ? isPagePath(pathOf(request)) : configOf(request).isOpen === true
const idOf = (request: FastifyRequest): string | undefined => (request.params as { id?: string } | null)?.id
