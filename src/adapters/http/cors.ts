import type { FastifyReply, FastifyRequest } from 'fastify'

const preflightSeconds = 86_400

/**
 * Lets pages of any origin send calls and read the answers. Beacons always come with credentials, for which
 * browsers want their origin by name and not `*`; nothing here depends on a cookie.
 */
export function allowOrigin(request: FastifyRequest, reply: FastifyReply): void {
  const { origin } = request.headers
  if (origin === undefined) return
  reply.headers({
    'Access-Control-Allow-Origin': origin,
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Expose-Headers': 'Retry-After',
    Vary: 'Origin',
  })
}

/** Answers what browsers ask before they send. */
export function preflight(request: FastifyRequest, reply: FastifyReply): void {
  reply
    .code(204)
    .headers({
      'Access-Control-Allow-Methods': 'GET, POST, PUT, OPTIONS',
      'Access-Control-Allow-Headers':
        request.headers['access-control-request-headers'] ?? 'Authorization, Content-Type, Content-Encoding',
      'Access-Control-Max-Age': String(preflightSeconds),
    })
    .send()
}
