// What the console answers beside its operations: refusals of its own, and errors.
import { createGzip } from 'node:zlib'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { apiPrefix } from './document.ts'
import { answerOf, refusal, RequestRefused } from '../operators/check.ts'
import { nameOfPerson } from '../core/access/company-roles.ts'
import { roleOf, type ApiAnswer, type Caller, type Operation } from '../operators/operation.ts'
import type { TokenRefusal } from '../adapters/http/authorization.ts'
import { maxBodyBytes } from './bodies.ts'

export const stopped = new RequestRefused(
  'unavailable',
  'the console is being stopped; repeat the request, it goes on where this one stopped',
)
export const starting = refusal('unavailable', 'the console is starting, or waits for Kafka: see /readyz')
export const bug = refusal('internal_error', 'the console failed; its log says why')
export const noRoute = refusal(
  'not_found',
  `there is no such route; ${apiPrefix}/openapi.json names all that there are`,
)
/** What is wrong with a token, for people. */
export const unauthorized = {
  missing: 'a token is needed: `Authorization: Bearer <ADMIN_TOKEN>`',
  wrong: 'the token is neither the console’s ADMIN_TOKEN nor one that works: it is wrong, or was revoked',
  ended: 'the session is over, or its token was revoked: log in again',
}

/** The answer to a token that is refused. */
export function tokenRefused(refused: TokenRefusal): ApiAnswer {
  if (refused === 'unknown') return starting
  const error = refused === 'wrong' ? ', error="invalid_token"' : ''
  return {
    ...refusal('unauthorized', unauthorized[refused]),
    headers: { 'WWW-Authenticate': `Bearer realm="postrider"${error}` },
  }
}

/** A caller, for people. */
const nameOf = ({ name }: Caller): string => nameOfPerson(name) ?? `token "${name}"`

export function forbiddenToLimited(caller: Caller, operation: Operation): ApiAnswer {
  return refusal(
    'forbidden',
    `${nameOf(caller)} is limited to ${caller.only!.join(', ')}, and ${operation.id} is about the whole deployment`,
  )
}

export function forbidden(caller: Caller, operation: Operation, query: unknown): ApiAnswer {
  const needed = roleOf(operation, query)
  const given = needed === roleOf(operation) ? '' : ' with these parameters'
  return refusal(
    'forbidden',
    `${nameOf(caller)} has the role ${caller.role}, and ${operation.id} takes the role ${needed}${given}`,
  )
}

export const foreign = refusal(
  'forbidden',
  'this request comes from another site, or does not say where from: with a session cookie, only the console’s own page may send it',
)

export const jsonNeeded = refusal(
  'unsupported_media_type',
  'with a session cookie, the Content-Type must be application/json, also without a body',
)

/** To a target in the absolute form, which is for proxies: what stands in front may take it for another path. */
export const noPath = refusal(
  'invalid_http',
  'the target of a request must begin with "/"; send the host in the Host header',
)

/** The answer to what Fastify or a handler threw; null for a bug. Fastify's own messages may quote the body. */
export function answerTo(error: unknown): ApiAnswer | null {
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

export function notFound(
  operations: readonly Operation[],
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const path = pathOf(request)
  const allowed = operations.filter(({ path: template }) =>
    new RegExp(`^${apiPrefix}${template.replace(/\{\w+\}/g, '[^/]+')}$`).test(path),
  )
  if (allowed.length === 0) return send(reply, noRoute)
  const methods = allowed.map(({ method }) => method).join(', ')
  reply.header('Allow', methods)
  send(reply, refusal('method_not_allowed', `there is ${methods} at this path`))
}

/** What is shorter fits into a packet or two as it is. */
const minZipped = 2_048

export function send(reply: FastifyReply, { status, headers, body }: ApiAnswer): void {
  const text = `${JSON.stringify(body)}\n`
  reply.code(status).headers({ ...headers, 'Content-Type': 'application/json; charset=utf-8' })
  if (text.length < minZipped) return void reply.send(text)
  reply.header('Vary', 'Accept-Encoding')
  if (!takesGzip(reply.request.headers)) return void reply.send(text)
  const zipped = createGzip()
  zipped.end(text)
  reply.header('Content-Encoding', 'gzip').send(zipped)
}

export const takesGzip = (headers: FastifyRequest['headers']): boolean =>
  /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(String(headers['accept-encoding'] ?? ''))

export const pathOf = (request: FastifyRequest): string => request.url.split('?')[0]!
