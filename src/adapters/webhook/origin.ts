import type { SecureContext } from 'node:tls'
import type { Connection, ConnectionOwner, ConnectionParts, HttpClient } from './connection.ts'
import { TroubledAddresses } from './dial.ts'

/**
 * The connections to one scheme, host and port by one login, whichever of its URLs they serve: as many as there are requests in
 * flight. An endpoint that hangs has those that its requests are on and no others, for each carries one at a time. Free
 * ones are used again last in, first out, so that those which are not needed any more stay unused and close of age.
 */
export class WebhookOrigin implements ConnectionOwner {
  readonly #url: URL
  readonly #client: HttpClient
  readonly #parts: ConnectionParts
  readonly #withFree: Set<WebhookOrigin>
  readonly #onUnused: () => void
  readonly #connections = new Set<Connection>()
  readonly #free: Connection[] = []
  /** Each carries a request, and waits for its turn to open; the oldest first. */
  readonly #unopened = new Set<Connection>()
  #endpoints = 0
  session: Buffer | null = null
  readonly troubled: TroubledAddresses
  readonly secureContext: SecureContext | null

  /**
   * @param url of any path
   * @param secureContext what its connections have of their own in TLS; null: nothing
   * @param withFree origins that may have free connections: it adds itself
   * @param onUnused its last endpoint has left
   */
  constructor(
    url: URL,
    client: HttpClient,
    parts: ConnectionParts,
    secureContext: SecureContext | null,
    withFree: Set<WebhookOrigin>,
    onUnused: () => void,
  ) {
    this.#url = url
    this.#client = client
    this.#parts = parts
    this.secureContext = secureContext
    this.troubled = new TroubledAddresses(parts.steadyNow)
    this.#withFree = withFree
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
    return this.#free.pop() ?? this.#connect()
  }

  /** A new one for a request whose connection ended. */
  replace(connection: Connection): Connection {
    this.#parts.counts.restarts++
    this.giveBack(connection, false, false)
    return this.#connect()
  }

  #connect(): Connection {
    const connection = new this.#client(this.#url, this.#parts, this)
    this.#connections.add(connection)
    this.#unopened.add(connection)
    return connection
  }

  onOpens(connection: Connection): void {
    this.#unopened.delete(connection)
  }

  /**
   * What it carried has ended; `reusable` says whether it can take another request, `failed` that the response was a 5xx. A request that
   * waits for a connection to be opened has it next, which is sooner: where a receiver has restarted, a thousand wait.
   */
  giveBack(connection: Connection, reusable: boolean, failed: boolean): void {
    connection.attempt = null
    const isRetired = reusable && connection.mustRetire(failed)
    if (isRetired) this.#parts.counts.retired++
    if (!reusable || isRetired || this.#endpoints === 0) {
      this.#discard(connection)
      return
    }
    connection.idleSeconds = 0
    if (this.#unopened.size > 0) {
      const [waiting] = this.#unopened as Iterable<Connection> as [Connection]
      waiting.moveTo(connection)
      this.#discard(waiting)
      return
    }
    this.#free.push(connection)
    this.#withFree.add(this)
  }

  /** Called every second while there are free ones: closes what has been unused for too long, or is old. */
  closeOld(): void {
    for (const connection of this.#free) connection.idleSeconds++
    const retired = this.#free.filter((connection) => connection.mustRetire(false))
    this.#parts.counts.retired += retired.length
    const old = this.#free.filter((connection) => connection.isOld || retired.includes(connection))
    for (const connection of old) this.onClosed(connection)
    if (this.#free.length === 0) this.#withFree.delete(this)
  }

  /** Ends what is in flight. */
  abort(): void {
    for (const connection of [...this.#connections])
      connection.attempt?.fail('network', 'stopped while in flight')
  }

  /** A free connection has ended. */
  onClosed(connection: Connection): void {
    const index = this.#free.lastIndexOf(connection)
    if (index >= 0) this.#free.splice(index, 1)
    this.#discard(connection)
  }

  #discard(connection: Connection): void {
    this.#connections.delete(connection)
    this.#unopened.delete(connection)
    connection.destroy()
  }
}
