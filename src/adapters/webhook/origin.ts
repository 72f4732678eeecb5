import type { Openings } from './openings.ts'
import { Connection, type ConnectionOwner, type Connector } from './connection.ts'

/**
 * How long a connection is kept unused, in ms, unless the server's Keep-Alive header says less. A server that
 * closes it earlier costs no attempt: see Attempt.
 */
const keepAliveMs = 15_000

/**
 * The connections to one scheme, host and port, whichever of its URLs they serve: as many as there are requests under
 * way. An endpoint that hangs has those that its requests are on and no others, for each carries one at a time. Free
 * ones are used again last in, first out, so that those which are not needed any more stay unused and close of age.
 */
export class WebhookOrigin implements ConnectionOwner {
  readonly name: string
  readonly #connector: Connector
  readonly #openings: Openings
  readonly #onUnused: () => void
  readonly #connections = new Set<Connection>()
  readonly #free: Connection[] = []
  #endpoints = 0
  /** undici looks it up for a new connection, but only holds it weakly: it would be gone with the next garbage collection. */
  session: Buffer | null = null

  /**
   * @param name `https://host:port`, as URL.origin
   * @param onUnused its last endpoint has left
   */
  constructor(name: string, connector: Connector, openings: Openings, onUnused: () => void) {
    this.name = name
    this.#connector = connector
    this.#openings = openings
    this.#onUnused = onUnused
  }

  /** An endpoint will send over it, until it leaves. */
  join(): void {
    this.#endpoints++
  }

  /** With the last one free connections close; what is in flight ends. */
  leave(): void {
    if (--this.#endpoints > 0) return
    for (const connection of this.#free.splice(0)) this.#discard(connection)
    this.#onUnused()
  }

  /** A free connection, or a new one. */
  take(): Connection {
    return this.#free.pop() ?? this.connect()
  }

  connect(): Connection {
    const connection = new Connection(this.name, keepAliveMs, this.#connector, this.#openings, this)
    this.#connections.add(connection)
    return connection
  }

  /** What it carried has ended; `reusable` says whether it can take another request. */
  giveBack(connection: Connection, reusable: boolean): void {
    connection.attempt = null
    if (reusable && this.#endpoints > 0) this.#free.push(connection)
    else this.#discard(connection)
  }

  /** Ends what is in flight. */
  abort(): void {
    for (const connection of [...this.#connections])
      connection.attempt?.fail('network', 'stopped while in flight')
  }

  /** A connection that carries an attempt notifies the attempt; a free one is discarded. */
  onClosed(connection: Connection): void {
    if (connection.attempt !== null) return
    const index = this.#free.lastIndexOf(connection)
    if (index >= 0) this.#free.splice(index, 1)
    this.#discard(connection)
  }

  onSession(session: Buffer): void {
    this.session = session
  }

  #discard(connection: Connection): void {
    this.#connections.delete(connection)
    connection.destroy()
  }
}
