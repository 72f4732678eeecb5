import type { Dispatcher } from 'undici'
import { headerText } from '../../core/header-text.ts'
import type { AttemptSink, EndpointClient, SignedRequest } from '../../forwarder/ports.ts'
import { PostriderError } from '../../errors.ts'
import { Attempt, type AttemptOwner } from './attempt.ts'
import { Connection, type ConnectionOwner, type Connector } from './connection.ts'
import type { Deadlines } from './deadlines.ts'

/** What all endpoints of a transport share. */
export interface EndpointSettings {
  timeoutMs: number
  deadlines: Deadlines
  connector: Connector
  /** Epoch ms. */
  now: () => number
  /** Why this host, given as an address, must not be connected to; null also for names, vetted when resolved. */
  refusal: (hostname: string) => string | null
  /** The endpoint was closed and its last connection is gone. */
  onClosed: (endpoint: WebhookEndpoint) => void
}

/**
 * How long a connection is kept unused, in ms, unless the server's Keep-Alive header says less. A server that
 * closes it earlier costs no attempt: see Attempt.
 */
const keepAliveMs = 15_000

/**
 * The connections to one URL: as many as there are requests under way. Free ones are used again last in, first
 * out, so that those which are not needed any more stay unused and close of age.
 */
export class WebhookEndpoint implements EndpointClient, AttemptOwner, ConnectionOwner {
  readonly timeoutMs: number
  readonly #settings: EndpointSettings
  readonly #origin: string
  readonly #refusal: string | null
  readonly #connections = new Set<Connection>()
  readonly #free: Connection[] = []
  /** One object, and three arrays of headers, for every request: undici reads them within dispatch(). */
  readonly #options: Dispatcher.DispatchOptions
  readonly #signedHeaders: string[]
  readonly #unsignedHeaders: string[]
  /** With the headers of Standard Webhooks. */
  readonly #standardHeaders: string[]
  #inFlight = 0
  #closed = false

  constructor(url: string, headers: Readonly<Record<string, string>>, settings: EndpointSettings) {
    const parsed = new URL(url)
    if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:')
      throw new PostriderError('usage', `a webhook's URL begins with http or https, not ${parsed.protocol}`)
    this.timeoutMs = settings.timeoutMs
    this.#settings = settings
    this.#origin = parsed.origin
    this.#refusal = settings.refusal(parsed.hostname)
    const fixed = ['User-Agent', 'postrider/1.0', 'Content-Type', 'application/json']
    const own = Object.entries(headers).flat()
    // `#start` fills in the empty values.
    this.#signedHeaders = [...fixed, 'X-Signature', '', 'Idempotency-Key', '', ...own]
    const standard = ['webhook-id', '', 'webhook-timestamp', '', 'webhook-signature', '']
    this.#standardHeaders = [...fixed, 'X-Signature', '', 'Idempotency-Key', '', ...standard, ...own]
    this.#unsignedHeaders = [...fixed, 'Idempotency-Key', '', ...own]
    this.#options = { method: 'POST', path: parsed.pathname + parsed.search, headers: [], body: null }
  }

  send(request: SignedRequest, sink: AttemptSink): void {
    const attempt = new Attempt(this, request, sink, performance.now())
    this.#inFlight++
    this.#settings.deadlines.add(attempt)
    attempt.starting = true
    if (this.#refusal !== null) attempt.fail('blocked', this.#refusal)
    else if (this.#closed) attempt.fail('network', 'this endpoint is closed')
    else this.#start(attempt, this.#free.pop() ?? this.#connect())
    attempt.starting = false
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    for (const connection of this.#free.splice(0)) this.#discard(connection)
    this.#reportClosed()
  }

  /** Ends what is still under way, as a failure that can be retried. */
  abort(): void {
    this.close()
    for (const connection of [...this.#connections])
      connection.attempt?.fail('network', 'stopped while under way')
  }

  now(): number {
    return this.#settings.now()
  }

  finish(attempt: Attempt, reusable: boolean): void {
    this.#inFlight--
    if (!attempt.expired) this.#settings.deadlines.remove(attempt)
    const connection = attempt.connection
    if (connection !== null) {
      connection.attempt = null
      connection.responses++
      if (reusable && !this.#closed) this.#free.push(connection)
      else this.#discard(connection)
    }
    if (this.#closed) this.#reportClosed()
  }

  restart(attempt: Attempt): void {
    if (attempt.connection !== null) this.#discard(attempt.connection)
    this.#start(attempt, this.#connect())
  }

  /** A connection that carries an attempt tells the attempt; a free one is of no more use. */
  onClosed(connection: Connection): void {
    if (connection.attempt !== null) return
    const index = this.#free.lastIndexOf(connection)
    if (index >= 0) this.#free.splice(index, 1)
    this.#discard(connection)
  }

  #start(attempt: Attempt, connection: Connection): void {
    const { signature, body, signer } = attempt.request
    const id = headerText(attempt.request.idempotencyKey)
    let headers = this.#unsignedHeaders
    if (signature === null) headers[5] = id
    else {
      headers = this.#signedHeaders
      if (signer) {
        headers = this.#standardHeaders
        const timestamp = String(Math.floor(this.#settings.now() / 1_000))
        headers[9] = id
        headers[11] = timestamp
        headers[13] = signer.sign(id, timestamp, body)
      }
      headers[5] = signature
      headers[7] = id
    }
    this.#options.headers = headers
    this.#options.body = body
    attempt.connection = connection
    connection.attempt = attempt
    connection.client.dispatch(this.#options, attempt)
  }

  #connect(): Connection {
    const connection = new Connection(this.#origin, keepAliveMs, this.#settings.connector, this)
    this.#connections.add(connection)
    return connection
  }

  #discard(connection: Connection): void {
    connection.attempt = null
    this.#connections.delete(connection)
    connection.destroy()
  }

  #reportClosed(): void {
    if (this.#inFlight === 0) this.#settings.onClosed(this)
  }
}
