// The references: the same bodies with the same signature as fast as Node can post them, and nothing else. Each body is
// rendered when its turn comes, as a forwarder has to; what is rendered comes from a small ring of calls, so that nothing
// waits for memory that a forwarder would not have touched either.
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { createSecureContext } from 'node:tls'
import { Pool, type Dispatcher } from 'undici'
import { renderBody } from '../../src/core/call/body.ts'
import { BodySigner } from '../../src/forwarder/plan/destination-runtime.ts'
import { nthCall, sharedSecret } from '../calls.ts'

/**
 * `request` and `dispatch` are undici's. `socket` is HTTP written by hand on a raw socket: less than any client can do, since
 * it neither checks an answer nor survives a connection that ends.
 */
export type BareWay = 'request' | 'dispatch' | 'socket'

interface Order {
  by: BareWay
  /** They take turns. */
  urls: string[]
  requests: number
  users: number
  inFlight: number
  /** Connections to each origin, at most. */
  connections: number
  /** The file of a certificate to trust. */
  caFile?: string
}

/** Resolves once the answer has come. */
type Post = (body: Buffer, signature: string, id: string) => Promise<void>

const ringSize = 1_024

async function run({ by, urls, requests, users, inFlight, connections, caFile }: Order): Promise<void> {
  const ring = Array.from({ length: Math.min(requests, ringSize) }, (_, index) => nthCall(index, users))
  const { targets, close } = by === 'socket' ? sockets(urls, inFlight) : pools(by, urls, connections, caFile)
  const signer = new BodySigner(sharedSecret)
  let next = 0
  const loop = async (): Promise<void> => {
    while (next < requests) {
      const index = next++
      const body = Buffer.from(renderBody(ring[index % ring.length]!))
      const signature = signer.sign(body)
      const id = `bench-${index.toString().padStart(10, '0')}:crm`
      await targets[index % targets.length]!(body, signature, id)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, loop))
  await close()
}

interface Bare {
  /** One for each URL. */
  targets: Post[]
  close(): Promise<unknown>
}

function pools(by: 'request' | 'dispatch', urls: string[], connections: number, caFile?: string): Bare {
  const byOrigin = new Map<string, Pool>()
  // Made once: for each connection it would take longer than the handshake.
  const connect = caFile ? { secureContext: createSecureContext({ ca: readFileSync(caFile) }) } : {}
  const targets = urls.map((url) => {
    const { origin, pathname } = new URL(url)
    const pool = byOrigin.get(origin) ?? new Pool(origin, { connections, connect })
    byOrigin.set(origin, pool)
    return by === 'request' ? requesting(pool, pathname) : dispatching(pool, pathname)
  })
  return { targets, close: () => Promise.all([...byOrigin.values()].map((pool) => pool.close())) }
}

const requesting =
  (pool: Pool, path: string): Post =>
  async (body, signature, id) => {
    const response = await pool.request({
      method: 'POST',
      path,
      headers: {
        'User-Agent': 'postrider/1.0',
        'Content-Type': 'application/json',
        'X-Signature': signature,
        'Idempotency-Key': id,
      },
      body,
    })
    await response.body.dump()
  }

const dispatching =
  (pool: Pool, path: string): Post =>
  (body, signature, id) =>
    new Promise((resolve, reject) => {
      const headers = [
        ...['User-Agent', 'postrider/1.0', 'Content-Type', 'application/json'],
        ...['X-Signature', signature, 'Idempotency-Key', id],
      ]
      pool.dispatch({ method: 'POST', path, headers, body }, new Answer(resolve, reject))
    })

class Answer implements Dispatcher.DispatchHandler {
  readonly #resolve: () => void
  readonly #reject: (error: Error) => void

  constructor(resolve: () => void, reject: (error: Error) => void) {
    this.#resolve = resolve
    this.#reject = reject
  }

  onRequestStart(): void {}
  onResponseStart(): void {}
  onResponseData(): void {}

  onResponseEnd(): void {
    this.#resolve()
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#reject(error)
  }
}

/** Each URL has its own connections, each with one request at a time; the receiver's answer comes in one piece. */
function sockets(urls: string[], inFlight: number): Bare {
  const all = urls.map((url) => {
    const { hostname, host, port, pathname } = new URL(url)
    const head = `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\nconnection: keep-alive\r\nUser-Agent: postrider/1.0\r\nContent-Type: application/json\r\nX-Signature: `
    const idle: Connection[] = []
    const open = (): Connection => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true })
      const connection: Connection = { socket, done: null }
      socket.on('data', () => {
        idle.push(connection)
        connection.done!()
      })
      return connection
    }
    for (let index = 0; index < Math.ceil(inFlight / urls.length); index++) idle.push(open())
    const post: Post = (body, signature, id) =>
      new Promise((resolve) => {
        const connection = idle.pop() ?? open()
        connection.done = resolve
        const text = `${head}${signature}\r\nIdempotency-Key: ${id}\r\ncontent-length: ${body.length}\r\n\r\n`
        // Both in one write, and so in one packet.
        const request = Buffer.allocUnsafe(text.length + body.length)
        request.write(text, 0, 'latin1')
        body.copy(request, text.length)
        connection.socket.write(request)
      })
    return { post, close: () => idle.forEach(({ socket }) => socket.end()) }
  })
  return { targets: all.map(({ post }) => post), close: async () => all.forEach(({ close }) => close()) }
}

interface Connection {
  socket: ReturnType<typeof connect>
  done: (() => void) | null
}

process.on('message', (order: Order) => void run(order))
process.on('disconnect', () => process.exit())
process.send!({ kind: 'listening' })
