import { readFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { createSecureContext, TLSSocket, type SecureVersion } from 'node:tls'
import { once } from 'node:events'
import type { TestContext } from 'node:test'
import { OnePieceSocket } from '../../support/secured/one-piece-socket.ts'
import type { ServerCertificate } from '../../support/secured/certificates.ts'

/** A server on loopback that writes bytes by hand; ended after the test. */
export interface RawServer {
  url: string
  /** Connections so far. */
  connections(): number
  /** Whole requests as they came, in order. */
  requests: string[]
}

export interface RawServerOptions {
  /** `answer` is called with the first bytes of each connection, and nothing more is read from it. */
  answersEarly?: boolean
  /** Makes it a TLS server, of this version only. */
  tls?: ServerCertificate & { version: SecureVersion }
  /** With TLS: what `answer` or `onConnection` writes in one call reaches the client in one piece. */
  inOnePiece?: boolean
  /** Called with each connection; with TLS before the server's last flight of the handshake is written. */
  onConnection?: (socket: Socket) => void
}

/** `answer` is called with each whole request, in order over all connections, from 0, and the request. */
export async function startRawServer(
  t: TestContext,
  answer: (socket: Socket, index: number, request: string) => void,
  { answersEarly = false, tls, inOnePiece = false, onConnection }: RawServerOptions = {},
): Promise<RawServer> {
  const sockets = new Set<Socket>()
  const requests: string[] = []
  let accepted = 0
  const onSocket = (socket: Socket, together: (write: () => void) => void) => {
    together(() => onConnection?.(socket))
    let come = ''
    if (answersEarly) {
      socket.once('data', (data) => answer(socket.pause(), accepted - 1, data.toString('latin1')))
      return
    }
    socket.on('data', (data) => {
      come += data.toString('latin1')
      for (let end = endOfRequest(come); end > 0; end = endOfRequest(come)) {
        const request = come.slice(0, end)
        requests.push(request)
        come = come.slice(end)
        together(() => answer(socket, requests.length - 1, request))
      }
    })
  }
  const context = tls && createSecureContext({ ...tls, minVersion: tls.version, maxVersion: tls.version })
  const server = createServer((socket) => {
    accepted++
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket)).on('error', () => {})
    if (!context) return onSocket(socket, (write) => write())
    const secured = inOnePiece
      ? new OnePieceSocket(socket, context)
      : new TLSSocket(socket, { isServer: true, secureContext: context })
    secured.on('error', () => socket.destroy())
    secured.once('secure', () =>
      onSocket(secured, (write) => (secured instanceof OnePieceSocket ? secured.inOnePiece(write) : write())),
    )
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as { port: number }
  return { url: `http${tls ? 's' : ''}://127.0.0.1:${port}/hook`, connections: () => accepted, requests }
}

/** 0: it is not whole. */
function endOfRequest(come: string): number {
  const head = come.indexOf('\r\n\r\n')
  if (head < 0) return 0
  const end = head + 4 + Number(/^content-length: (\d+)$/im.exec(come.slice(0, head))![1])
  return come.length < end ? 0 : end
}

/**
 * Blocks this process until all that was written to the socket lies in the other side's receive buffer: also over
 * loopback it takes a moment to get there, and what comes later is another case.
 */
export function untilArrived({ localPort, remotePort }: Socket): void {
  const hex = (port: number | undefined) => `:${port!.toString(16).toUpperCase().padStart(4, '0')}`
  const line = new RegExp(`${hex(localPort)} [0-9A-F]+${hex(remotePort)} .. ([0-9A-F]{8}):`)
  const deadline = performance.now() + 1_000
  // What is acknowledged has arrived.
  while (process.platform === 'linux' && performance.now() < deadline)
    if (line.exec(readFileSync('/proc/self/net/tcp', 'latin1'))?.[1] === '00000000') return
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50)
}
