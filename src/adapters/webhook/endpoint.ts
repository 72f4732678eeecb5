import type { Dispatcher } from 'undici'
import { headerText } from '../../core/delivery/header-text.ts'
import type { SignedRequest } from '../../forwarder/send/signed-request.ts'
import type { AttemptSink, EndpointClient, WebhookTarget } from '../../forwarder/send/webhook-transport.ts'
import { HttpAttempt, type AttemptOwner } from './attempt.ts'
import { OwnSecrets } from './own-secrets.ts'
import type { Connection } from './connection.ts'
import type { Deadlines } from './deadlines.ts'
import type { WebhookOrigin } from './origin.ts'

/** What all endpoints of a transport share. */
export interface EndpointOptions {
  timeoutMs: number
  deadlines: Deadlines
  /** Epoch ms. */
  now: () => number
  /** Why this host, given as an address, must not be connected to; null also for names, vetted when resolved. */
  refusal: (hostname: string) => string | null
  /** The endpoint was closed, and its last request has ended. */
  onClosed: (endpoint: WebhookEndpoint) => void
}

/** One URL with its static headers: what is sent there, over the connections that its origin has. */
export class WebhookEndpoint implements EndpointClient, AttemptOwner {
  readonly timeoutMs: number
  readonly secrets: OwnSecrets
  readonly #settings: EndpointOptions
  readonly #origin: WebhookOrigin
  readonly #refusal: string | null
  /** One object, and three arrays of headers, for every request: undici reads them within dispatch(). */
  readonly #options: Dispatcher.DispatchOptions
  readonly #signedHeaders: string[]
  readonly #unsignedHeaders: string[]
  /** With the headers of Standard Webhooks. */
  readonly #standardHeaders: string[]
  #inFlight = 0
  #closed = false

  constructor(
    url: URL,
    { headers, secrets = [] }: Pick<WebhookTarget, 'headers' | 'secrets'>,
    origin: WebhookOrigin,
    settings: EndpointOptions,
  ) {
    this.timeoutMs = settings.timeoutMs
    this.secrets = new OwnSecrets([...Object.values(headers), ...secrets])
    this.#settings = settings
    this.#origin = origin
    origin.join()
    this.#refusal = settings.refusal(url.hostname)
    const fixed = ['User-Agent', 'postrider/1.0', 'Content-Type', 'application/json']
    const own = Object.entries(headers).flat()
    // `#start` fills in the empty values.
    this.#signedHeaders = [...fixed, 'X-Signature', '', 'Idempotency-Key', '', ...own]
    const standard = ['webhook-id', '', 'webhook-timestamp', '', 'webhook-signature', '']
    this.#standardHeaders = [...fixed, 'X-Signature', '', 'Idempotency-Key', '', ...standard, ...own]
    this.#unsignedHeaders = [...fixed, 'Idempotency-Key', '', ...own]
    this.#options = { method: 'POST', path: url.pathname + url.search, headers: [], body: null }
  }

  send(request: SignedRequest, sink: AttemptSink): void {
    const attempt = new HttpAttempt(this, request, sink, performance.now())
    this.#inFlight++
    this.#settings.deadlines.add(attempt)
    attempt.starting = true
    if (this.#refusal !== null) attempt.fail('blocked', this.#refusal)
    else if (this.#closed) attempt.fail('network', 'this endpoint is closed')
    else this.#start(attempt, this.#origin.take())
    attempt.starting = false
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#origin.leave()
    this.#reportClosed()
  }

  /** Ends what is still in flight at its origin, as a failure that can be retried. */
  abort(): void {
    this.close()
    this.#origin.abort()
  }

  now(): number {
    return this.#settings.now()
  }

  finish(attempt: HttpAttempt, reusable: boolean): void {
    this.#inFlight--
    if (!attempt.expired) this.#settings.deadlines.remove(attempt)
    const { connection } = attempt
    if (connection !== null) {
      connection.responses++
      this.#origin.giveBack(connection, reusable)
    }
    if (this.#closed) this.#reportClosed()
  }

  restart(attempt: HttpAttempt): void {
    if (attempt.connection !== null) this.#origin.giveBack(attempt.connection, false)
    this.#start(attempt, this.#origin.connect())
  }

  #start(attempt: HttpAttempt, connection: Connection): void {
    const { signature, body, signer, traceparent } = attempt.request
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
    this.#options.headers = traceparent ? traced(headers, traceparent) : headers
    this.#options.body = body
    attempt.connection = connection
    connection.attempt = attempt
    connection.client.dispatch(this.#options, attempt)
  }

  #reportClosed(): void {
    if (this.#inFlight === 0) this.#settings.onClosed(this)
  }
}

/** Names and values by turns. The call's trace replaces a static one. */
function traced(headers: readonly string[], traceparent: string): string[] {
  const others = headers.filter((_, index) => headers[index - (index % 2)]!.toLowerCase() !== 'traceparent')
  return [...others, 'traceparent', traceparent]
}
