import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { Client, type buildConnector } from 'undici'
import type { OutcomeKind } from '../../core/delivery/outcome.ts'
import type { Cancel, Openings } from './openings.ts'

/** undici's connector also returns the socket that it is connecting, which its types leave out. */
export type Connector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket
type Open = (...args: Parameters<Connector>) => void

/** What a connection carries. */
export interface CarriedAttempt {
  fail(kind: OutcomeKind, detail: string): void
}

export interface ConnectionOwner {
  /** The connection was closed: by the server, by its idle timeout, by an error. */
  onClosed(connection: Connection): void
  /** The server gave a TLS session, which a later connection can take up. */
  onSession(session: Buffer): void
}

/**
 * One connection to an origin: an undici Client that has one request in flight at the most. It connects at the
 * first request. undici's Pool does the same, but looks through all its clients for a free one at each request.
 */
export class Connection {
  readonly client: Client
  /** What it carries now; null while it is free. */
  attempt: CarriedAttempt | null = null
  /** Complete responses on the present socket: the server may close a used one at the very moment we write. */
  responses = 0
  /** The server's certificate was not trusted; no request was written. */
  untrusted = false
  #socket: Socket | null = null
  #cancelOpening: Cancel = ignore

  /** @param openings opens the connection when its turn has come */
  constructor(
    origin: string,
    keepAliveMs: number,
    connector: Connector,
    openings: Openings,
    owner: ConnectionOwner,
  ) {
    const open: Open = (options, callback) => {
      const socket = connector(options, (...result) => {
        // Node sets this when, and only when, it refused the certificate (chain, dates or name).
        if (result[0] !== null && socket instanceof TLSSocket && socket.authorizationError)
          this.untrusted = true
        callback(...result)
      })
      if (socket instanceof TLSSocket) socket.on('session', (session) => owner.onSession(session))
      this.#socket = socket
    }
    this.client = new Client(origin, {
      connect: (options, callback) => {
        this.responses = 0
        this.#cancelOpening = openings.add(origin, () => open(options, callback))
      },
      pipelining: 1,
      keepAliveTimeout: keepAliveMs,
      // The deadline is ours, over everything from look-up to the last byte; undici's own timers are per phase
      // and up to half a second late.
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    const onClosed = () => owner.onClosed(this)
    this.client.on('disconnect', onClosed)
    this.client.on('connectionError', onClosed)
  }

  /** Closes the socket whatever it is doing; also one that is still connecting, which undici would leave be. */
  destroy(): void {
    if (this.client.destroyed) return
    this.#cancelOpening()
    this.client.destroy(null, ignore)
    this.#socket?.destroy()
  }
}

function ignore(): void {}
