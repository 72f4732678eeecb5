// What is between forwarders and a receiver, and goes away for a while: a token endpoint, or a forward proxy.
import type { AddressInfo, Server, Socket } from 'node:net'

export const outages = ['refuses', 'hangs', 'fails'] as const
/** Nobody listens; it answers nothing; it answers with an error. */
export type Outage = (typeof outages)[number]

export const goingAway = ['token endpoint', 'proxy'] as const
export type GoesAway = (typeof goingAway)[number]

/** The destination whose requests need it. */
export const destinationBehind: Record<GoesAway, string> = { 'token endpoint': 'login', proxy: 'proxied' }

const againMs = 50

/** A server on loopback that comes back at its own port. */
export class Leaving {
  outage: Outage | null = null
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #port = 0

  constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket))
    })
  }

  async start(): Promise<number> {
    await this.#listen()
    this.#port = (this.#server.address() as AddressInfo).port
    return this.#port
  }

  /** Goes away, with all connections; null: comes back. */
  async become(outage: Outage | null): Promise<void> {
    this.outage = outage
    for (const socket of this.#sockets) socket.resetAndDestroy()
    if (outage === 'refuses') this.#server.close()
    // Its port may be that of a connection of somebody else just then.
    while (this.outage === null && !this.#server.listening)
      await this.#listen().catch(() => new Promise((resolve) => setTimeout(resolve, againMs)))
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen({ port: this.#port, host: '127.0.0.1', backlog: 4_096 }, () => {
        this.#server.off('error', reject)
        resolve()
      })
    })
  }
}
