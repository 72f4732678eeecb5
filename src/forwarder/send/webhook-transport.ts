// What sending needs from outside: connections to endpoints.
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { ContentType, OAuthClientAuth, RequestMethod } from '../../core/settings/destination-options.ts'
import type { Fillable, Filled, Unrenderable } from '../../core/shape/text-template.ts'
import type { SignedRequest } from './signed-request.ts'

/** Receives the outcome of a request: an object rather than a closure, because there is one per attempt. */
export interface AttemptSink {
  onOutcome(outcome: Outcome): void
  /**
   * Called when the request is about to be written for the first time, which is never within send(): true withdraws it,
   * unsent and without an outcome. A process that was frozen in between must not send what has another owner by now.
   */
  withdraw?(): boolean
  /**
   * Called when the server ended a used connection before any of its response came, but after the request was written: true
   * sends it once more, as the same attempt; false makes it a failed one. The same of one whose token was refused.
   */
  sendAgain?(why: SentAgainFor): boolean
  /**
   * Called when such a request is about to be written once more: false makes it a failed attempt after all. Its connection
   * or its token may have taken seconds, and a pause or another owner have come meanwhile.
   */
  mayStillGo?(): boolean
  /** A part of the body of an answer below 300: a window on memory that the next read writes over. */
  onBody?(chunk: Buffer): void
}

/** Its connection ended, or its token was refused. */
export type SentAgainFor = 'connection' | 'token'

/** What requests to a destination need before they can be sent: a token. */
export interface EndpointLogin {
  readonly isReady: boolean
  /** Why none is to be had at present, in one line; null while it is not known, or there is one. */
  readonly problem: string | null
  /** Gets what is missing. Does nothing where that is in hand. */
  begin(): void
  /** Calls back whenever requests can be sent that could not be, or the other way round. */
  onChange(listener: () => void): void
  forget(listener: () => void): void
}

/** Connections to one URL. The forwarder bounds how many requests are in flight; this opens what that needs. */
export interface EndpointClient {
  /**
   * Sends at once. `sink.onOutcome` is called exactly once, never synchronously, and no later than the deadline; never where
   * this throws.
   */
  send(request: SignedRequest, sink: AttemptSink): void
  /** Why no request can be made with these values: the URL needs one that is not there, or not such a one. Null: one can. */
  lacking?(filled: Filled | null): Unrenderable | null
  /** Null or absent: they need none. */
  readonly login?: EndpointLogin | null
  /** Takes no more; connections close once what is on the wire has ended. Idempotent. */
  close(): void
}

/** A header whose value differs from request to request. */
export interface FilledHeader {
  name: string
  value: Fillable
}

/** What a destination has of its own in TLS. In PEM form; null where there is none. */
export interface TlsLogin {
  /** The certificate that requests identify themselves with, with those between it and its root. */
  cert: string | null
  /** Of `cert`. */
  key: string | null
  /** Roots to trust beside all others. */
  ca: string | null
}

/** Where requests get their token from: the client credentials grant of OAuth2 (RFC 6749, 4.4). */
export interface OAuthLogin {
  /** The destination's id: its URLs share their tokens, and no other destination does. */
  owner: string
  tokenUrl: string
  clientId: string
  clientSecret: string
  clientAuth: OAuthClientAuth
  scope: string | null
  audience: string | null
}

/** URL, headers and secrets of requests. */
export interface WebhookTarget {
  url: string
  /** Default POST. */
  method?: RequestMethod
  /** Default json. */
  contentType?: ContentType | 'lines'
  /** In place of the URL's path and query; null or absent: those are of every request. */
  path?: Fillable | null
  withHoles?: readonly FilledHeader[]
  headers: Readonly<Record<string, string>>
  /** Shared secrets. What a receiver sends back is kept without these, and without the headers' values. */
  secrets?: readonly string[]
  /** The URL of a forward proxy, or `none`; null or absent: that of the deployment, if it has one. */
  proxy?: string | null
  /** Null or absent: it has nothing of its own. */
  tls?: TlsLogin | null
  /** Null or absent: they have no token. */
  oauth?: OAuthLogin | null
}

export interface WebhookTransport {
  open(target: WebhookTarget): EndpointClient
  /** Closes every connection, after `graceMs` by force. */
  close(graceMs: number): Promise<void>
}
