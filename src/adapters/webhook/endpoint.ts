import type { Exchange } from '../../core/delivery/exchange.ts'
import { headerText, headerNameFaults } from '../../core/delivery/static-headers.ts'
import type { SignedRequest } from '../../forwarder/send/signed-request.ts'
import type {
  AttemptSink,
  EndpointClient,
  TlsLogin,
  WebhookTarget,
} from '../../forwarder/send/webhook-transport.ts'
import { HttpAttempt, type AttemptOwner } from './attempt.ts'
import type { Connection } from './connection.ts'
import type { Deadlines } from './deadlines.ts'
import { filledPath } from '../../core/shape/request-url.ts'
import { filledHeader, Unrenderable, type Filled } from '../../core/shape/text-template.ts'
import { HeadTemplate } from './head-template.ts'
import type { WebhookOrigin } from './origin.ts'
import type { TokenSource } from './token-source.ts'
import { OwnSecrets } from './own-secrets.ts'
import type { ResponseFields } from './response.ts'
import { exchangeOf, hidden, shownHead } from './shown-request.ts'

/** What all endpoints of a transport share. */
export interface EndpointOptions {
  timeoutMs: number
  /** See AttemptOwner. */
  keepsSuccesses: boolean
  deadlines: Deadlines
  /** Epoch ms. */
  now: () => number
  /** @param proxy as a destination has it, as `tls` is */
  originOf: (url: URL, proxy: string | null, tls: TlsLogin | null) => WebhookOrigin
  /** The tokens of the target's requests; null: they need none. It takes part in them until it leaves. */
  tokensOf: (target: WebhookTarget) => TokenSource | null
  leaveTokens: (target: WebhookTarget) => void
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
  readonly keepsSuccesses: boolean
  readonly #target: WebhookTarget
  readonly #settings: EndpointOptions
  readonly login: TokenSource | null
  #route: Route | null = null
  #secrets: OwnSecrets | null = null
  /** The tokens among the secrets. */
  #tokens: readonly string[] | null = null
  #inFlight = 0
  #closed = false
  /** It was closed, and nothing of it is in flight any more. */
  #hasLeft = false

  constructor(target: WebhookTarget, settings: EndpointOptions) {
    this.timeoutMs = settings.timeoutMs
    this.keepsSuccesses = settings.keepsSuccesses
    this.#target = target
    this.#settings = settings
    this.login = settings.tokensOf(target)
  }

  get secrets(): OwnSecrets {
    const { headers, withHoles = [], secrets = [], oauth = null } = this.#target
    const tokens = this.login?.recent ?? null
    if (this.#secrets !== null && this.#tokens === tokens) return this.#secrets
    this.#tokens = tokens
    const ofLogin = oauth === null ? [] : [oauth.clientSecret, ...tokens!]
    const literals = withHoles.flatMap(({ value }) => value.parts.filter((part) => typeof part === 'string'))
    this.#secrets = new OwnSecrets([...Object.values(headers), ...literals, ...secrets, ...ofLogin])
    return this.#secrets
  }

  send(request: SignedRequest, sink: AttemptSink): void {
    const attempt = new HttpAttempt(this, request, sink, performance.now())
    this.#inFlight++
    this.#settings.deadlines.add(attempt)
    attempt.starting = true
    try {
      this.#begin(attempt)
    } catch (error) {
      // Whoever asked hears of it now: its deadline would tell them once more.
      if (!attempt.isOver) attempt.drop()
      throw error
    }
    attempt.starting = false
  }

  lacking(filled: Filled | null): Unrenderable | null {
    const { path = null } = this.#target
    if (path === null) return null
    try {
      filledPath(path, filled ?? [], 1)
      return null
    } catch (error) {
      if (error instanceof Unrenderable) return error
      throw error
    }
  }

  #begin(attempt: HttpAttempt): void {
    if (this.#closed) {
      attempt.fail('network', 'this endpoint is closed')
      return
    }
    const { refusal } = this.#routed()
    if (refusal !== null) attempt.fail(refusal.kind, refusal.detail)
    else if (this.login === null) this.#start(attempt)
    else this.#startWithToken(attempt, this.login)
  }

  #start(attempt: HttpAttempt): void {
    const { origin } = this.#routed()
    const head = this.#headOf(attempt)
    if (head === null) attempt.fail('network', 'a header of the request has a character that cannot be sent')
    else this.#sendOn(origin.take(), attempt, head)
  }

  /** Where there is no token yet it waits for one, within its own time. */
  #startWithToken(attempt: HttpAttempt, login: TokenSource): void {
    attempt.token = login.use()
    if (attempt.token !== null) {
      this.#start(attempt)
      return
    }
    attempt.waitsForToken = true
    login.wait((problem) => {
      if (attempt.isOver) return
      attempt.waitsForToken = false
      if (problem === null) this.#startWithToken(attempt, login)
      else attempt.fail('no_token', problem)
    })
  }

  mayLogInAgain(token: string): boolean {
    return this.login !== null && this.login.refused(token)
  }

  refusedAgain(token: string): void {
    this.login!.refusedAgain(token)
  }

  logInAgain(attempt: HttpAttempt, reusable: boolean): void {
    const connection = attempt.connection!
    attempt.connection = null
    connection.responses++
    this.#routed().origin.giveBack(connection, reusable, false)
    this.#startWithToken(attempt, this.login!)
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
    const { connection, token } = attempt
    if (token !== null && attempt.isTokenProven) this.login!.proven(token)
    if (connection !== null) {
      connection.responses++
      this.#routed().origin.giveBack(connection, reusable, attempt.serverFailed)
    }
    if (this.#closed) this.#reportClosed()
  }

  restart(attempt: HttpAttempt): void {
    const { origin } = this.#routed()
    this.#sendOn(origin.replace(attempt.connection!), attempt, this.#headOf(attempt)!)
  }

  #routed(): Route {
    if (this.#route === null) {
      this.#route = routeOf(this.#target, this.#settings)
      this.#route.origin.join()
    }
    return this.#route
  }

  #sendOn(connection: Connection, attempt: HttpAttempt, { template, fields }: Head): void {
    attempt.connection = connection
    connection.attempt = attempt
    connection.send(template, fields, attempt.request.body)
  }

  exchangeOf({ request, token, signedAt }: HttpAttempt, fields: ResponseFields | null): Exchange {
    const { signature, signer = null } = request
    const shown = { ...request, signature: signature && hidden, signer: signer && noSigner }
    // It is what was sent: the same request and target make the same head.
    const head = headOf(this.#target, this.#routed(), shown, signedAt)!
    const common = head.template.first.length / 2
    return exchangeOf(
      shownHead(this.#target, head, token !== null),
      common,
      request.body.length,
      fields,
      this.secrets,
    )
  }

  #headOf(attempt: HttpAttempt): Head | null {
    const { request, token } = attempt
    const now = this.#settings.now()
    if (request.signer) attempt.signedAt = now
    const head = headOf(this.#target, this.#routed(), request, now)
    if (token !== null) head?.fields.push(...bearer(token))
    return head
  }

  #reportClosed(): void {
    if (this.#inFlight > 0 || this.#hasLeft) return
    this.#hasLeft = true
    this.#settings.leaveTokens(this.#target)
    this.#settings.onClosed(this)
  }
}

/** A valid signature is of use to whoever has it: it is not kept. */
const noSigner = { sign: () => hidden }

/** What carries a token (RFC 6750, 2.1). */
export const bearer = (token: string): [name: string, value: string] => ['Authorization', `Bearer ${token}`]

/**
 * Anything may come back, but as it is: secrets that it repeats are found, and people can read it. (Some firewalls distrust
 * requests without an Accept.)
 */
const accepts: readonly [name: string, value: string][] = [
  ['accept', '*/*'],
  ['accept-encoding', 'identity'],
]

/** Of one request: what it has in common with others, and its own fields, names and values by turns. */
export interface Head {
  template: HeadTemplate
  fields: string[]
}

/**
 * The head that a request has; null when a field of it cannot be sent.
 *
 * @param now epoch ms
 */
export function headOf(
  { path = null, withHoles = [] }: WebhookTarget,
  { template, untraced }: Templates,
  request: SignedRequest,
  now: number,
): Head | null {
  const fields = ownFields(request, now)
  const common = request.traceparent ? untraced : template
  if (path === null && withHoles.length === 0)
    return areInOneLine(fields) ? { template: common, fields } : null
  const { filled, attempt = 1 } = request
  for (const { name, value } of withHoles) {
    const text = filledHeader(value, filled ?? [], attempt)
    if (text !== null) fields.push(name, text)
  }
  if (!areInOneLine(fields)) return null
  return { template: path === null ? common : common.to(filledPath(path, filled ?? [], attempt)), fields }
}

/** Those of our own that differ from request to request. */
function ownFields(
  { signature, idempotencyKey, body, signer, traceparent }: SignedRequest,
  now: number,
): string[] {
  const fields = signature === null ? [] : ['X-Signature', signature]
  if (idempotencyKey === null) return fields
  const id = headerText(idempotencyKey)
  fields.push('Idempotency-Key', id)
  if (signature !== null && signer) {
    const timestamp = String(Math.floor(now / 1_000))
    fields.push('webhook-id', id, 'webhook-timestamp', timestamp)
    fields.push('webhook-signature', signer.sign(id, timestamp, body))
  }
  if (traceparent) fields.push('traceparent', traceparent)
  return fields
}

/** What the heads of a target's requests have in common. */
export interface Templates {
  template: HeadTemplate
  /** The same without a static traceparent: the call's own replaces it. */
  untraced: HeadTemplate
}

/** How requests of an endpoint go out. */
interface Route extends Templates {
  origin: WebhookOrigin
  /** Why none does. */
  refusal: Refusal | null
}

const routeOf = (target: WebhookTarget, { originOf, refusal }: EndpointOptions): Route => {
  const url = new URL(target.url)
  return {
    ...templatesOf(target),
    origin: originOf(url, target.proxy ?? null, target.tls ?? null),
    refusal: refusalOf(Object.entries(target.headers)) ?? blockedBy(refusal(url.hostname)),
  }
}

const mediaTypes = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded',
  lines: 'application/x-ndjson',
}

export function templatesOf({
  url: text,
  headers,
  method = 'POST',
  contentType = 'json',
}: WebhookTarget): Templates {
  const url = new URL(text)
  const own = Object.entries(headers)
  const isOwn = (name: string) => own.some(([other]) => other.toLowerCase() === name)
  const first = [
    ['host', url.host],
    ['connection', 'keep-alive'],
    // A static header takes the place of ours.
    ...accepts.filter(([name]) => !isOwn(name)),
    ['User-Agent', 'postrider/1.0'],
    ['Content-Type', mediaTypes[contentType]],
  ].flat()
  const path = url.pathname + url.search
  const template = new HeadTemplate(method, path, first, own.flat())
  const untraced = own.filter(([name]) => name.toLowerCase() !== 'traceparent')
  return {
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

/** Whatever its makers have checked: a character beyond Latin-1 is cut to one of its bytes, which may end the line. */
function areInOneLine(fields: readonly string[]): boolean {
  for (let at = 1; at < fields.length; at += 2) if (!inOneLine.test(fields[at]!)) return false
  return true
}

/** Settings hold none of these. */
function refusalOf(headers: readonly [name: string, value: string][]): Refusal | null {
  const wrong = headers.find(([name, value]) => headerNameFaults(name).length > 0 || !inOneLine.test(value))
  return wrong ? { kind: 'network', detail: `invalid ${wrong[0]} header` } : null
}
