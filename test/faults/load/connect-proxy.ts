import { connect, createServer, type Socket } from 'node:net'
import { Leaving, type Outage } from './outages.ts'

/** So long a receiver may read what came over a connection that has ended, in ms: much comes at once after an outage. */
const readWithinMs = 120_000

/** A forward proxy: it connects by CONNECT, to loopback only, and knows which of a receiver's connections are its own. */
export class ConnectProxy {
  readonly #leaving: Leaving
  /** By port the latest that had it: the system gives a port again. */
  readonly #own = new Map<number, Socket>()

  constructor() {
    this.#leaving = new Leaving(createServer((socket) => this.#serve(socket)))
  }

  start(): Promise<number> {
    return this.#leaving.start()
  }

  become(outage: Outage | null): Promise<void> {
    return this.#leaving.become(outage)
  }

  /** Whether the connection that a receiver has with `remotePort` is one of this proxy. */
  isOwn(remotePort: number | undefined): boolean {
    return this.#own.has(remotePort!)
  }

  #serve(socket: Socket): void {
    let head = ''
    const onData = (chunk: Buffer) => {
      head += chunk.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      socket.off('data', onData)
      socket.pause()
      const { outage } = this.#leaving
      if (outage === 'hangs') return
      const port = /^CONNECT 127\.0\.0\.1:(\d+) HTTP\/1\.1\r\n/.exec(head)?.[1]
      if (outage === 'fails' || port === undefined) socket.end('HTTP/1.1 503 Service Unavailable\r\n\r\n')
      else this.#join(socket, Number(port))
    }
    socket.on('data', onData)
  }

  #join(socket: Socket, port: number): void {
    const upstream = connect({ port, host: '127.0.0.1' })
    let ownPort: number | null = null
    upstream.on('connect', () => {
      ownPort = upstream.localPort!
      this.#own.set(ownPort, upstream)
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
      socket.pipe(upstream).pipe(socket)
    })
    upstream.on('error', () => {})
    upstream.on('close', () => {
      if (ownPort !== null) setTimeout(() => this.#forget(ownPort!, upstream), readWithinMs).unref()
      socket.destroy()
    })
    socket.on('close', () => upstream.destroy())
  }

  #forget(port: number, upstream: Socket): void {
    if (this.#own.get(port) === upstream) this.#own.delete(port)
  }
}
