import type { Exchange } from './exchange.ts'

/** The closed set of outcomes of one attempt at one URL (docs/delivery.md). */
export const outcomeKinds = [
  'success',
  'timeout',
  'status_5xx',
  'status_4xx',
  'status_429',
  'gone',
  'redirect',
  'network',
  'tls',
  'blocked',
  'proxy',
  'no_token',
  'deferred',
] as const
export type OutcomeKind = (typeof outcomeKinds)[number]

/** It was put off without an attempt; or, of one whose token was refused, without the second try that it gets. */
export const isPutOff = (kind: OutcomeKind): kind is 'deferred' | 'no_token' =>
  kind === 'deferred' || kind === 'no_token'

/** What one attempt at one URL came to. An HTTP failure is a value, never an exception. */
export interface Outcome {
  kind: OutcomeKind
  /** HTTP status, or null when there was no response. */
  status: number | null
  /**
   * The wait the receiver asked for by Retry-After, in ms from the response; null when it asked for none. Of
   * `deferred`: how long the endpoint takes nothing, as far as that is known.
   */
  retryAfterMs: number | null
  /** Of `deferred`: the endpoint works, and can take it after `retryAfterMs`. */
  hasPlaceThen?: true
  /**
   * At most the first 4 KB of the response's body; null when there was none, and on success, of which 1 KB is kept where
   * everything is recorded.
   */
  body: Uint8Array | null
  /** From taking the request off its queue to the end of the response, in ms. */
  durationMs: number
  /** One line for people: an error code or message. Never holds a secret. Null on success. */
  detail: string | null
  /** What went out, where anything did; not on success, unless everything is recorded. */
  exchange?: Exchange | null
}

/** The outcome of a delivery that was not attempted. */
export function deferredOutcome(detail: string): Outcome {
  return { kind: 'deferred', status: null, retryAfterMs: null, body: null, durationMs: 0, detail }
}

/**
 * No request was sent, because the server could not be trusted or its address is not allowed. Both are often slips that are
 * repaired in minutes: an expired certificate, a default one while a load balancer is set up, a resolver that is down.
 */
export const isRefusal = (kind: OutcomeKind): kind is 'tls' | 'blocked' =>
  kind === 'tls' || kind === 'blocked'

/**
 * Nothing got as far as the server: beside a refusal, the forward proxy refused the connection or failed, or there was no
 * token, which says nothing of the endpoint.
 */
export const isUnsent = (kind: OutcomeKind): kind is 'tls' | 'blocked' | 'proxy' | 'no_token' =>
  isRefusal(kind) || kind === 'proxy' || kind === 'no_token'

/** Whether another attempt may succeed (docs/delivery.md). */
export function canRetry(outcome: Outcome): boolean {
  switch (outcome.kind) {
    case 'timeout':
    case 'status_5xx':
    case 'status_429':
    case 'network':
    case 'tls':
    case 'blocked':
    case 'proxy':
    case 'no_token':
    case 'deferred':
      return true
    case 'status_4xx':
      return outcome.status === 408 || outcome.status === 425
    default:
      return false
  }
}

/** A refusal that is about who sends, whatever was sent: what a request holds makes no difference to it. */
export const isAboutSender = ({ status }: Outcome): boolean => status === 401 || status === 403

/** How much of a response is read before its status decides anyway, in bytes. */
export const maxResponseBytes = 64 * 1024
/** How much of a failed response's body is kept for people, in bytes. */
export const keptResponseBytes = 4 * 1024
/** The same of a success, where everything is recorded. */
export const keptSuccessBytes = 1024

/**
 * The outcome of a final status (200 and above; docs/delivery.md). A status outside the known
 * classes counts as a 5xx (RFC 9110, section 15).
 */
export function outcomeKindOf(status: number): OutcomeKind {
  if (status >= 200 && status < 300) return 'success'
  if (status >= 300 && status < 400) return 'redirect'
  if (status === 410) return 'gone'
  if (status === 429) return 'status_429'
  if (status >= 400 && status < 500) return 'status_4xx'
  return 'status_5xx'
}
