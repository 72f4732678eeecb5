import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { TestContext } from 'node:test'
import type { ServerCertificate } from './secured/certificates.ts'

/** A forward proxy on loopback that keeps what it was asked for; ended after the test. */
export interface ForwardProxy {
  url: string
  port: number
  /** Heads of CONNECT requests as they came, in order. */
  heads: string[]
  /** What they asked for. */
  readonly authorities: string[]
  /** All bytes that came behind the heads. */
  readonly passed: string
  /** Connections so far, those on which nothing was asked for included. */
  connections(): number
  /** Ends all connections by FIN. */
  endAll(): void
}

export interface ForwardProxyOptions {
  host?: string
  /** Default a free one. */
  port?: number
  /** Makes it an https proxy. */
  tls?: ServerCertificate
  /** Answers in its place; false: it connects as it was asked to. */
  answer?: (socket: Socket, authority: string, head: string) => boolean
  /** Where names are. */
  addressOf?: (name: string) => string
}

export async function startForwardProxy(
  t: TestContext,
  { host = '127.0.0.1', port: wanted = 0, tls, answer, addressOf }: ForwardProxyOptions = {},
): Promise<ForwardProxy> {
  const heads: string[] = []
  const passed: Buffer[] = []
  const sockets = new Set<Socket>()
  let accepted = 0
  const kept = (socket: Socket) => {
    sockets.add(socket)
    return socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket))
  }
  const authorityOf = (head: string) => head.split(' ')[1]!
  const onSocket = (socket: Socket) => {
    let come = Buffer.alloc(0)
    const onData = (data: Buffer) => {
      come = Buffer.concat([come, data])
      const end = come.indexOf('\r\n\r\n')
      if (end < 0) return
      socket.off('data', onData).pause()
      const head = come.subarray(0, end).toString('latin1')
      heads.push(head)
      const authority = authorityOf(head)
      if (answer?.(socket, authority, head)) return
      const { hostname, port } = new URL(`http://${authority}/`)
      const name = hostname.replace(/[[\]]/g, '')
      let isConnected = false
      const upstream = kept(connect(Number(port || 80), addressOf?.(name) ?? name))
      upstream.once('connect', () => {
        isConnected = true
        socket.write('HTTP/1.1 200 Connection established\r\nProxy-Agent: test\r\n\r\n')
        socket.on('data', (sent: Buffer) => passed.push(sent)).on('close', () => upstream.destroy())
        upstream.on('close', () => socket.destroy())
        socket.pipe(upstream).pipe(socket)
      })
      upstream.once('error', () => {
        // A reset goes on as one.
        if (isConnected) socket.resetAndDestroy()
        else socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n')
      })
    }
    kept(socket).on('data', onData)
  }
  const server: Server = tls ? createTlsServer(tls, onSocket) : createServer(onSocket)
  server.on('connection', () => accepted++)
  server.listen(wanted, host)
  await once(server, 'listening')
  t.after(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  const { port } = server.address() as AddressInfo
  return {
    url: `http${tls ? 's' : ''}://${host}:${port}`,
    port,
    heads,
    get authorities() {
      return heads.map(authorityOf)
    },
    get passed() {
      return Buffer.concat(passed).toString('latin1')
    },
    connections: () => accepted,
    endAll: () => sockets.forEach((socket) => socket.end()),
  }
}
