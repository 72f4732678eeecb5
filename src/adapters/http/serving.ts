// What our HTTP servers have in common: how they begin, how they end, and what they say to what is no HTTP.
import type { ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { PostriderError } from '../../errors.ts'

export interface HttpServer {
  /** The port that was got, when 0 was asked for. */
  port: number
  /** Takes no more connections, answers the requests in flight, cuts off what is left after `graceMs`. Idempotent. */
  close(graceMs: number): Promise<void>
}

/**
 * Lets the app listen, and end by `end`. Throws PostriderError 'local' that names the variable, `<part>_PORT` or
 * `<part>_HOST`, for what cannot be had.
 */
export async function serve(
  app: FastifyInstance,
  { port, host, part }: { port: number; host: string; part: string },
  end = (graceMs: number): Promise<void> => closeServer(app, graceMs),
): Promise<HttpServer> {
  let closing: Promise<void> | null = null
  // Also on requests that came in before: else their connections would stay open until the grace has passed.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (closing) reply.header('Connection', 'close')
    done(null, payload)
  })
  try {
    await app.listen({ port, host })
  } catch (error) {
    throw listenFailure(error, { port, host, part })
  }
  return {
    port: (app.server.address() as AddressInfo).port,
    close: (graceMs) => (closing ??= end(graceMs)),
  }
}

export function listenFailure(
  error: unknown,
  { port, host, part }: { port: number; host: string; part: string },
): PostriderError {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRNOTAVAIL' || code === 'EAFNOSUPPORT')
    return new PostriderError(
      'local',
      `${part}_HOST is ${host}, which is no address of this machine (${code}); 0.0.0.0 is all of its IPv4 addresses`,
      { cause: error },
    )
  const why = code === 'EADDRINUSE' ? 'is taken' : `cannot be had (${code})`
  return new PostriderError(
    'local',
    `${part}_PORT is ${port}, a port that ${why}; give another one, or 0 for any that is free`,
    { cause: error },
  )
}

/** Where a server is reached from its own machine: all interfaces, and loopback, are `localhost`. */
export function urlAt(host: string, port: number): string {
  if (['::', '0.0.0.0', '127.0.0.1', '::1'].includes(host)) return `http://localhost:${port}`
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Takes no more connections, waits for the requests in flight, and cuts off what is left after `graceMs`. */
export async function closeServer(app: FastifyInstance, graceMs: number): Promise<void> {
  const force = setTimeout(() => app.server.closeAllConnections(), graceMs)
  await app.close()
  clearTimeout(force)
}

/** The network takes an answer at once, unless the sender does not read: then its connection ends in time. */
export function endUnlessTaken(response: ServerResponse, withinMs: number): void {
  if (response.writableLength === 0) return
  const timer = setTimeout(() => response.destroy(), withinMs).unref()
  response.once('close', () => clearTimeout(timer))
}

/** How long an answer that ends its connection has to get there, in ms. */
const lastAnswerMs = 1_000

/**
 * What is no HTTP, is too large for a head, or took too long: the connection ends with it.
 *
 * @param tooSlow status and head fields for what took too long
 */
export function badHttpHandler(
  bodyOf: (code: string, message: string) => object,
  tooSlow = '408 Request Timeout',
) {
  return (error: NodeJS.ErrnoException, socket: Socket): void => {
    // Node's own handler looks there too: an answer that has begun cannot be another one.
    const answering = (socket as Socket & { _httpMessage?: { headersSent: boolean } | null })._httpMessage
    if (error.code === 'ECONNRESET' || !socket.writable || answering?.headersSent)
      return void socket.destroy()
    const [status, code, message] =
      error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ([tooSlow, 'too_slow', 'the request did not come in time'] as const)
        : error.code === 'HPE_HEADER_OVERFLOW'
          ? ([
              '431 Request Header Fields Too Large',
              'head_too_large',
              'the request’s head is too large',
            ] as const)
          : (['400 Bad Request', 'invalid_http', 'this is no HTTP/1.1 request'] as const)
    const body = JSON.stringify(bodyOf(code, message))
    socket.end(
      `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    )
    // Also when the other side goes on to send.
    const timer = setTimeout(() => socket.destroy(), lastAnswerMs).unref()
    socket.once('close', () => clearTimeout(timer))
  }
}
