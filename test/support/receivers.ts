/**
 * Receivers of webhooks for tests. Each is a real server on a free loopback port that keeps what it got:
 *
 *     const receiver = await startReceiver(t, { secret: 's3cret' })
 *     receiver.answer({ status: 503 }, { status: 200 })   // the first request, then the second and all later ones
 *     … deliver to receiver.url …
 *     const [first, second] = await receiver.waitFor(2)
 *     assert.equal(first.signature, 'valid')
 *
 * It is closed, with all its connections, after the test.
 */
import { createHmac } from 'node:crypto'
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { TestContext } from 'node:test'
import type { ServerCertificate } from './secured/certificates.ts'

export interface ReceivedRequest {
  method: string
  /** With the query. */
  path: string
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>
  /** Names and values by turns, as they came. */
  rawHeaders: string[]
  body: Buffer
  /** The body as JSON; throws when it is none. */
  json(): Record<string, unknown>
  /** Epoch ms at which the whole request was there. */
  at: number
  /** The same by the steady clock, in ms: what orders it among other events of this process, however clocks are set. */
  steadyAt: number
  /** Of X-Signature, by a computation of the test's own. */
  signature: 'valid' | 'wrong' | 'absent' | 'unchecked'
  /** Counts the receiver's connections from 1: requests with the same number shared one. */
  connection: number
  /** Its connection took up a TLS session from before. */
  resumed: boolean
}

/** How a request is answered. What is left out: status 200 and no body, at once. */
export interface Answer {
  status?: number
  headers?: Record<string, string>
  body?: string | Uint8Array
  /** Before anything is sent, in ms. */
  delayMs?: number
  /** Answers once this has resolved. */
  after?: Promise<void>
  /** Sends an interim response (103) first. */
  earlyHints?: boolean
  /**
   * `hang`: never answers. `drip`: sends head and then one byte of body every `everyMs`, for ever. `reset`: closes
   * the connection by RST. `close`: closes it by FIN. `raw`: writes `bytes` as they are and closes.
   */
  instead?:
    | { do: 'hang' }
    | { do: 'drip'; everyMs: number }
    | { do: 'reset' }
    | { do: 'close' }
    | { do: 'raw'; bytes: string }
}

export interface Receiver {
  /** `http://127.0.0.1:<port>/hook`, or https. */
  url: string
  port: number
  /** All requests so far, in order of arrival. */
  requests: ReceivedRequest[]
  /** Connections accepted so far, TLS handshakes that failed included. */
  connections(): number
  /** Connections that are open now. */
  openConnections(): number
  /** What the next requests get, in order; the last answer goes on for ever. Replaces what was programmed before. */
  answer(...answers: (Answer | ((request: ReceivedRequest) => Answer))[]): void
  /** Resolves with all requests so far once there are `count`; rejects after `withinMs` (10 s). */
  waitFor(count: number, withinMs?: number): Promise<ReceivedRequest[]>
  /** Closes every connection by RST, the listening socket stays. */
  dropConnections(): void
  close(): Promise<void>
}

export interface ReceiverOptions {
  /** Checks X-Signature; without it `signature` is `unchecked`, or `absent`. */
  secret?: string
  /** Makes it an HTTPS server. */
  tls?: ServerCertificate
  /** `::1` for IPv6; default 127.0.0.1. */
  host?: string
  /** A port of the test's choice; default a free one. */
  port?: number
  /** How long it keeps an unused connection, in ms; default 60,000. Sent as Keep-Alive header by Node. */
  keepAliveMs?: number
}

export async function startReceiver(t: TestContext, options: ReceiverOptions = {}): Promise<Receiver> {
  const { secret, tls, host = '127.0.0.1', port = 0, keepAliveMs = 60_000 } = options
  const requests: ReceivedRequest[] = []
  const sockets = new Map<Socket, number>()
  const timers = new Set<NodeJS.Timeout>()
  let accepted = 0
  let answers: (Answer | ((request: ReceivedRequest) => Answer))[] = [{}]
  let changed = Promise.withResolvers<void>()

  const onRequest = (message: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.on('error', () => {})
    response.on('error', () => {})
    message.on('end', () => {
      const body = Buffer.concat(chunks)
      const request: ReceivedRequest = {
        method: message.method ?? '',
        path: message.url ?? '',
        headers: message.headers,
        rawHeaders: message.rawHeaders,
        body,
        json: () => JSON.parse(body.toString('utf8')) as Record<string, unknown>,
        at: Date.now(),
        steadyAt: performance.now(),
        signature: checkSignature(body, message.headers['x-signature'], secret),
        connection: acceptedOf(message.socket)?.[1] ?? 0,
        resumed: message.socket instanceof TLSSocket && message.socket.isSessionReused(),
      }
      requests.push(request)
      const next = answers.length > 1 ? answers.shift()! : answers[0]!
      const answer = typeof next === 'function' ? next(request) : next
      if (answer.after !== undefined) void answer.after.then(() => give(answer, response))
      else if (answer.delayMs === undefined) give(answer, response)
      else later(answer.delayMs, () => give(answer, response))
      changed.resolve()
      changed = Promise.withResolvers()
    })
  }

  // For TLS the request's socket wraps the one that was accepted: they share their remote port.
  const acceptedOf = (socket: Socket | null): [Socket, number] | null => {
    for (const entry of sockets) if (entry[0].remotePort === socket?.remotePort) return entry
    return null
  }

  const later = (ms: number, run: () => void) => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      run()
    }, ms)
    timers.add(timer)
  }

  const give = (answer: Answer, response: ServerResponse) => {
    const { status = 200, headers = {}, body = '', instead } = answer
    const socket = response.socket
    if (answer.earlyHints) response.writeEarlyHints({ link: '</style.css>; rel=preload' })
    switch (instead?.do) {
      case undefined:
        response.writeHead(status, headers).end(body)
        break
      case 'hang':
        break
      case 'drip': {
        response.writeHead(status, headers)
        const drip = () => {
          if (response.destroyed) return
          response.write('.')
          later(instead.everyMs, drip)
        }
        drip()
        break
      }
      case 'reset':
        acceptedOf(socket)?.[0].resetAndDestroy()
        break
      case 'close':
        socket?.end()
        break
      case 'raw':
        socket?.write(instead.bytes)
        socket?.end()
    }
  }

  const server = tls ? createHttpsServer({ ...tls }, onRequest) : createHttpServer(onRequest)
  server.keepAliveTimeout = keepAliveMs
  server.on('connection', (socket: Socket) => {
    sockets.set(socket, ++accepted)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })

  let closing: Promise<void> | null = null
  const receiver: Receiver = {
    port: (server.address() as AddressInfo).port,
    url: '',
    requests,
    connections: () => accepted,
    openConnections: () => sockets.size,
    answer(...next) {
      answers = next.length > 0 ? next : [{}]
    },
    async waitFor(count, withinMs = 10_000) {
      const deadline = Date.now() + withinMs
      while (requests.length < count) {
        const remaining = deadline - Date.now()
        if (remaining <= 0)
          throw new Error(`${requests.length} of ${count} requests arrived within ${withinMs} ms`)
        const wait = Promise.withResolvers<void>()
        const timer = setTimeout(wait.resolve, remaining)
        await Promise.race([changed.promise, wait.promise])
        clearTimeout(timer)
      }
      return requests.slice()
    },
    dropConnections() {
      for (const socket of sockets.keys()) socket.resetAndDestroy()
    },
    close() {
      closing ??= new Promise((resolve) => {
        for (const timer of timers) clearTimeout(timer)
        server.close(() => resolve())
        for (const socket of sockets.keys()) socket.destroy()
      })
      return closing
    },
  }
  const authority = `${host.includes(':') ? `[${host}]` : host}:${receiver.port}`
  receiver.url = `${tls ? 'https' : 'http'}://${authority}/hook`
  t.after(() => receiver.close())
  return receiver
}

function checkSignature(
  body: Buffer,
  header: string | string[] | undefined,
  secret: string | undefined,
): ReceivedRequest['signature'] {
  if (header === undefined) return 'absent'
  if (secret === undefined) return 'unchecked'
  const expected = createHmac('sha1', Buffer.from(secret, 'utf8')).update(body).digest('hex')
  return header === expected ? 'valid' : 'wrong'
}
