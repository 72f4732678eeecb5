import { headerText, headerNameFaults } from '../../core/delivery/static-headers.ts'
import type { SignedRequest } from '../../forwarder/send/signed-request.ts'
import type { AttemptSink, EndpointClient, WebhookTarget } from '../../forwarder/send/webhook-transport.ts'
import { HttpAttempt, type AttemptOwner } from './attempt.ts'
import type { Connection } from './connection.ts'
import type { Deadlines } from './deadlines.ts'
import { filledPath } from '../../core/shape/request-url.ts'
import { filledHeader } from '../../core/shape/text-template.ts'
import { HeadTemplate } from './head-template.ts'
import type { WebhookOrigin } from './origin.ts'
import { OwnSecrets } from './own-secrets.ts'

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
    const { headers, withHoles = [], secrets = [] } = this.#target
    const literals = withHoles.flatMap(({ value }) => value.parts.filter((part) => typeof part === 'string'))
    return (this.#secrets ??= new OwnSecrets([...Object.values(headers), ...literals, ...secrets]))
  }

  send(request: SignedRequest, sink: AttemptSink): void {
    const attempt = new HttpAttempt(this, request, sink, performance.now())
    this.#inFlight++
    this.#settings.deadlines.add(attempt)
    attempt.starting = true
    if (this.#closed) attempt.fail('network', 'this endpoint is closed')
    else {
      const { origin, refusal } = this.#routed()
      const fields = refusal === null ? this.#fieldsOf(request) : null
      if (refusal !== null) attempt.fail(refusal.kind, refusal.detail)
      else if (fields === null)
        attempt.fail('network', 'a header of the request has a character that cannot be sent')
      else this.#sendOn(origin.take(), attempt, fields)
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
    this.#sendOn(origin.replace(attempt.connection!), attempt, this.#fieldsOf(attempt.request)!)
  }

  #routed(): Route {
    if (this.#route === null) {
      this.#route = routeOf(this.#target, this.#settings)
      this.#route.origin.join()
    }
    return this.#route
  }

  #sendOn(connection: Connection, attempt: HttpAttempt, fields: readonly string[]): void {
    const { template, untraced } = this.#routed()
    attempt.connection = connection
    connection.attempt = attempt
    const { traceparent, body } = attempt.request
    connection.send(this.#filled(traceparent ? untraced : template, attempt.request), fields, body)
  }

  /** With what stands in the holes of its path and headers. */
  #filled(template: HeadTemplate, { filled, attempt = 1 }: SignedRequest): HeadTemplate {
    const { path, withHoles = [] } = this.#target
    if (!path && withHoles.length === 0) return template
    const values = filled ?? []
    const own = withHoles.flatMap(({ name, value }) => {
      const text = filledHeader(value, values, attempt)
      return text === null ? [] : [name, text]
    })
    return new HeadTemplate(
      template.method,
      path ? filledPath(path, values, attempt) : template.path,
      template.first,
      [...template.own, ...own],
    )
  }

  /** Those that differ from request to request, names and values by turns. Null when one cannot be sent. */
  #fieldsOf({ signature, idempotencyKey, body, signer, traceparent }: SignedRequest): string[] | null {
    const id = headerText(idempotencyKey)
    const fields = signature === null ? [] : ['X-Signature', signature]
    fields.push('Idempotency-Key', id)
    if (signature !== null && signer) {
      const timestamp = String(Math.floor(this.#settings.now() / 1_000))
      fields.push('webhook-id', id, 'webhook-timestamp', timestamp)
      fields.push('webhook-signature', signer.sign(id, timestamp, body))
    }
    if (traceparent) fields.push('traceparent', traceparent)
    // Whatever its makers have checked: a character beyond Latin-1 is cut to one of its bytes, which may end the line.
    for (let at = 1; at < fields.length; at += 2) if (!inOneLine.test(fields[at]!)) return null
    return fields
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
  template: HeadTemplate
  /** The same without a static traceparent: the call's own replaces it. */
  untraced: HeadTemplate
}

function routeOf(
  { url: text, headers, method = 'POST', contentType }: WebhookTarget,
  { originOf, refusal }: EndpointOptions,
): Route {
  const url = new URL(text)
  const own = Object.entries(headers)
  const isOwn = (name: string) => own.some(([other]) => other.toLowerCase() === name)
  const first = [
    ['host', url.host],
    ['connection', 'keep-alive'],
    // A static header takes the place of ours.
    ...accepts.filter(([name]) => !isOwn(name)),
    ['User-Agent', 'postrider/1.0'],
    ['Content-Type', contentType === 'form' ? 'application/x-www-form-urlencoded' : 'application/json'],
  ].flat()
  const path = url.pathname + url.search
  const template = new HeadTemplate(method, path, first, own.flat())
  const untraced = own.filter(([name]) => name.toLowerCase() !== 'traceparent')
  return {
    origin: originOf(url),
    refusal: refusalOf(own) ?? blockedBy(refusal(url.hostname)),
    template,
    untraced: isOwn('traceparent') ? new HeadTemplate(method, path, first, untraced.flat()) : template,
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
