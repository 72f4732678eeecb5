import { headerText } from '../../core/delivery/header-text.ts'
import { headerNameFaults } from '../../core/delivery/static-headers.ts'
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
  originOf: (url: URL) => WebhookOrigin
  /** Why this host, given as an address, must not be connected to; null also for names, vetted when resolved. */
  refusal: (hostname: string) => string | null
  /** The endpoint was closed, and its last request has ended. */
  onClosed: (endpoint: WebhookEndpoint) => void
}

/**
 * One URL with its static headers: what is sent there, over the connections that its origin has. All but the URL and the
 * headers is made with the first request: of a hundred thousand endpoints most get none for long.
 */
export class WebhookEndpoint implements EndpointClient, AttemptOwner {
  readonly timeoutMs: number
  readonly #target: WebhookTarget
  readonly #settings: EndpointOptions
  #route: Route | null = null
  #secrets: OwnSecrets | null = null
  #inFlight = 0
  #closed = false

  constructor(target: WebhookTarget, settings: EndpointOptions) {
    this.timeoutMs = settings.timeoutMs
    this.#target = target
    this.#settings = settings
  }

  get secrets(): OwnSecrets {
    const { headers, secrets = [] } = this.#target
    return (this.#secrets ??= new OwnSecrets([...Object.values(headers), ...secrets]))
  }

  send(request: SignedRequest, sink: AttemptSink): void {
    const attempt = new HttpAttempt(this, request, sink, performance.now())
    this.#inFlight++
    this.#settings.deadlines.add(attempt)
    attempt.starting = true
    if (this.#closed) attempt.fail('network', 'this endpoint is closed')
    else {
      const { origin, refusal } = this.#routed()
      const head = refusal === null ? this.#headOf(request) : null
      if (refusal !== null) attempt.fail(refusal.kind, refusal.detail)
      else if (head === null)
        attempt.fail('network', 'a header of the request has a character that cannot be sent')
      else this.#sendOn(origin.take(), attempt, head)
    }
    attempt.starting = false
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.#route?.origin.leave()
    this.#reportClosed()
  }

  /** Ends what is still in flight at its origin, as a failure that can be retried. */
  abort(): void {
    this.close()
    this.#route?.origin.abort()
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
      this.#routed().origin.giveBack(connection, reusable, attempt.serverFailed)
    }
    if (this.#closed) this.#reportClosed()
  }

  restart(attempt: HttpAttempt): void {
    const { origin } = this.#routed()
    this.#sendOn(origin.replace(attempt.connection!), attempt, this.#headOf(attempt.request)!)
  }

  #routed(): Route {
    if (this.#route === null) {
      this.#route = routeOf(this.#target, this.#settings)
      this.#route.origin.join()
    }
    return this.#route
  }

  #sendOn(connection: Connection, attempt: HttpAttempt, head: string): void {
    attempt.connection = connection
    connection.attempt = attempt
    connection.send(head, attempt.request.body)
  }

  /** Null when a part of it cannot be sent. */
  #headOf({ signature, idempotencyKey, body, signer, traceparent }: SignedRequest): string | null {
    const { start, own, ownUntraced } = this.#routed()
    const id = headerText(idempotencyKey)
    let varying = id
    let head = start
    if (signature !== null) {
      varying += signature
      head += `X-Signature: ${signature}\r\n`
    }
    head += `Idempotency-Key: ${id}\r\n`
    if (signature !== null && signer) {
      const timestamp = String(Math.floor(this.#settings.now() / 1_000))
      const standard = signer.sign(id, timestamp, body)
      varying += standard
      head += `webhook-id: ${id}\r\nwebhook-timestamp: ${timestamp}\r\nwebhook-signature: ${standard}\r\n`
    }
    if (traceparent) {
      varying += traceparent
      head += `${ownUntraced}traceparent: ${traceparent}\r\n`
    } else head += own
    // Whatever its makers have checked: a character beyond Latin-1 is cut to one of its bytes, which may end the line.
    if (!inOneLine.test(varying)) return null
    return `${head}content-length: ${body.length}\r\n\r\n`
  }

  #reportClosed(): void {
    if (this.#inFlight === 0) this.#settings.onClosed(this)
  }
}

/**
 * Anything may come back, but as it is: secrets that it repeats are found, and people can read it. (Some firewalls distrust
 * requests without an Accept.)
 */
const accepts: readonly [name: string, value: string][] = [
  ['accept', '*/*'],
  ['accept-encoding', 'identity'],
]

/** How requests of an endpoint go out. */
interface Route {
  origin: WebhookOrigin
  /** Why none does. */
  refusal: Refusal | null
  /** What each head begins with, and the static headers of each. */
  start: string
  own: string
  /** The same without a static traceparent: the call's own replaces it. */
  ownUntraced: string
}

function routeOf({ url: text, headers }: WebhookTarget, { originOf, refusal }: EndpointOptions): Route {
  const url = new URL(text)
  const own = Object.entries(headers)
  // A static header takes the place of ours.
  const accepted = accepts.filter(([name]) => own.every(([other]) => other.toLowerCase() !== name))
  const untraced = own.filter(([name]) => name.toLowerCase() !== 'traceparent')
  return {
    origin: originOf(url),
    refusal: refusalOf(own) ?? blockedBy(refusal(url.hostname)),
    start: `POST ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: keep-alive\r\n${accepted.map(line).join('')}User-Agent: postrider/1.0\r\nContent-Type: application/json\r\n`,
    own: own.map(line).join(''),
    ownUntraced: untraced.map(line).join(''),
  }
}

interface Refusal {
  kind: 'blocked' | 'network'
  detail: string
}

const blockedBy = (detail: string | null): Refusal | null =>
  detail === null ? null : { kind: 'blocked', detail }

/** What may be in one line of a head, in Latin-1: it cannot end the line. */
const inOneLine = /^[\t\x20-\x7e\x80-\xff]*$/

/** Settings hold none of these. */
function refusalOf(headers: readonly [name: string, value: string][]): Refusal | null {
  const wrong = headers.find(([name, value]) => headerNameFaults(name).length > 0 || !inOneLine.test(value))
  return wrong ? { kind: 'network', detail: `invalid ${wrong[0]} header` } : null
}

const line = ([name, value]: [name: string, value: string]): string => `${name}: ${value}\r\n`
