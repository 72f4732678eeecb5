import type { Exchange } from '../../core/delivery/exchange.ts'
import {
  type Outcome,
  type OutcomeKind,
  keptResponseBytes,
  keptSuccessBytes,
  maxResponseBytes,
  outcomeKindOf,
} from '../../core/delivery/outcome.ts'
import { parseRetryAfter } from '../../core/delivery/retry-after.ts'
import type { SignedRequest } from '../../forwarder/send/signed-request.ts'
import type { AttemptSink } from '../../forwarder/send/webhook-transport.ts'
import type { CarriedAttempt, Connection } from './connection.ts'
import type { Expiring } from './deadlines.ts'
import type { OwnSecrets } from './own-secrets.ts'
import { failureOf, wasClosedUnderneath, NotHttp, ResponseTooLong, type ResponseFields } from './response.ts'

/** Of a token (RFC 6750, 3.1). */
const refusedStatus = 401

const mayNotGoAfterToken = 'the token was refused (401), and the request may not be sent again'

/** The part of an endpoint that its attempts use. */
export interface AttemptOwner {
  readonly timeoutMs: number
  /** What is struck out of what is kept of a response. */
  readonly secrets: OwnSecrets
  /** What went out and came back is kept of successes, too. */
  readonly keepsSuccesses: boolean
  /** Epoch ms, for a Retry-After that is a date. */
  now(): number
  /** The attempt is over; `reusable` says whether its connection can take another request. */
  finish(attempt: HttpAttempt, reusable: boolean): void
  /** Sends the attempt once more, on a new connection. */
  restart(attempt: HttpAttempt): void
  /** Its token was refused: whether it is worth another try with another one. */
  mayLogInAgain(token: string): boolean
  /** So was the other one. */
  refusedAgain(token: string): void
  /** Sends the attempt once more, with another token. */
  logInAgain(attempt: HttpAttempt, reusable: boolean): void
  /** What went out in the attempt, which was sent. @param fields of the response; null without one */
  exchangeOf(attempt: HttpAttempt, fields: ResponseFields | null): Exchange
}

/**
 * One attempt: what a connection carries, its own entry among the deadlines, and the one place that turns
 * what happens into an Outcome. One object per request; no closure and no promise on the way to a response.
 */
export class HttpAttempt implements CarriedAttempt, Expiring {
  readonly request: SignedRequest
  earlier: Expiring | null = null
  later: Expiring | null = null
  readonly expiresAt: number
  /** Null before the first start, and for an attempt that never gets one. */
  connection: Connection | null = null
  /** Within `send()` or `begin()`: a failure this early waits for the next microtask. */
  starting = false
  /** The deadline has passed, and taken the attempt off the list of deadlines. */
  expired = false
  /** That it was sent with; null before, and where none is needed. */
  token: string | null = null
  waitsForToken = false
  /** Epoch ms: what its signature says of when it was made, where it says so. */
  signedAt = 0
  readonly #owner: AttemptOwner
  readonly #sink: AttemptSink
  readonly #startedAt: number
  #settled = false
  /** It has another token than it was first sent with. */
  #isLoggedInAgain = false
  /** On its present connection. */
  #written = false
  /** On that or an earlier one. */
  #wasWritten = false
  /** It went out a second time, for its connection had ended underneath it. */
  #wasRepeated = false
  #answered = false
  #status = 0
  /** Its body is not text, and secrets in it would not be found. None was asked for (`accept-encoding: identity`). */
  #isEncoded = false
  #retryAfterMs: number | null = null
  #received = 0
  #kept: Buffer | null = null
  /** Of the response, where they are kept. */
  #fields: ResponseFields | null = null

  constructor(owner: AttemptOwner, request: SignedRequest, sink: AttemptSink, startedAt: number) {
    this.request = request
    this.expiresAt = startedAt + owner.timeoutMs
    this.#owner = owner
    this.#sink = sink
    this.#startedAt = startedAt
  }

  get isOver(): boolean {
    return this.#settled
  }

  /** Its token got it as far as the receiver. */
  get isTokenProven(): boolean {
    return this.#status > 0 && this.#status !== refusedStatus
  }

  /** It was answered with a 5xx. */
  get serverFailed(): boolean {
    return this.#status >= 500
  }

  /** The request is written unless it is not wanted any more. What was written before cannot be withdrawn: it fails. */
  begin(): boolean {
    if (this.#wasWritten) {
      if (this.#sink.mayStillGo?.() === false) {
        this.#mayNotGoAgain()
        return false
      }
    } else if (this.#sink.withdraw?.()) {
      this.drop()
      return false
    }
    this.#written = true
    this.#wasWritten = true
    return true
  }

  /** Nothing of it is written, and it has no outcome. */
  drop(): void {
    this.#settled = true
    this.#owner.finish(this, false)
  }

  onFirstByte(): void {
    this.#answered = true
  }

  onHead(status: number, retryAfter: string | null, isEncoded: boolean, fields: ResponseFields): void {
    this.#status = status
    this.#isEncoded = isEncoded
    if (this.#isKept) this.#fields = fields
    if (status >= 300 && retryAfter !== null)
      this.#retryAfterMs = parseRetryAfter(retryAfter, this.#owner.now())
  }

  onBody(chunk: Buffer): void {
    if (this.#settled) return
    this.#received += chunk.length
    if (this.#status < 300) this.#sink.onBody?.(chunk)
    if (this.#isKept && !this.#isEncoded) this.#keep(chunk)
    if (this.#received > maxResponseBytes) this.#settleByStatus(false)
  }

  onEnd(reusable: boolean): void {
    this.#settleByStatus(reusable)
  }

  onError(error: Error): void {
    if (this.#settled) return
    if (this.#status > 0 && error instanceof ResponseTooLong) {
      this.#settleByStatus(false)
      return
    }
    if (this.#mayRestart(error) && (!this.#written || this.#sink.sendAgain?.('connection') !== false)) {
      this.#wasRepeated ||= this.#written
      this.#written = false
      this.#owner.restart(this)
      return
    }
    const { kind, detail } = failureOf(error, this.connection?.untrusted ?? false)
    this.fail(kind, this.#status === 0 ? detail : `${detail} (response cut off after status ${this.#status})`)
  }

  expire(): void {
    this.expired = true
    const limit = `within ${this.#owner.timeoutMs} ms`
    if (this.waitsForToken) this.fail('no_token', `no token ${limit}`)
    else if (!this.#written && this.connection?.waitsForProxy)
      this.fail('proxy', `the proxy made no connection ${limit}`)
    else if (!this.#written) this.fail('timeout', `no connection ${limit}`)
    else if (this.#status === 0) this.fail('timeout', `no response ${limit}`)
    else this.fail('timeout', `no complete response ${limit} (status ${this.#status})`)
  }

  /** Ends the attempt without a response, and with it its connection. */
  fail(kind: OutcomeKind, detail: string): void {
    this.#settle(kind, null, null, detail, false)
  }

  /**
   * A keep-alive connection that ends before our request is written, or just as we write, says nothing about the
   * endpoint, nor does the end of a TLS handshake that offered a session of before. The request then goes out on a new
   * connection, within the same deadline and as the same attempt, provided that not one byte of a response has come; what is no HTTP at all is
   * left over from the response before (a late body of a 204, for one). If
   * it was written before, that is as safe as any retry: the receiver may have taken the first copy, and recognises the
   * second by Idempotency-Key or messageId. (Go's net/http does the same for requests that carry an Idempotency-Key.) Once
   * alone: what was written a second time is not written a third time.
   */
  #mayRestart(error: Error): boolean {
    return (
      this.connection !== null &&
      this.connection.mayEndUnnoticed &&
      !(this.#written && this.#wasRepeated) &&
      (error instanceof NotHttp || (!this.#answered && wasClosedUnderneath(error)))
    )
  }

  /** What came back is for people to see. */
  get #isKept(): boolean {
    return this.#status >= 300 || this.#owner.keepsSuccesses
  }

  get #keptBytes(): number {
    return this.#status < 300 ? keptSuccessBytes : keptResponseBytes
  }

  /** Copies: a chunk is a window on the socket's read buffer, which is much larger. */
  #keep(chunk: Buffer): void {
    const before = this.#kept
    // A secret that begins within what is kept must be seen whole.
    const max = this.#keptBytes + this.#owner.secrets.longest
    if (before === null) this.#kept = Buffer.from(chunk.subarray(0, max))
    else if (before.length < max) this.#kept = Buffer.concat([before, chunk.subarray(0, max - before.length)])
  }

  /**
   * A receiver that refuses a token may have ended it before its time. The request goes out once more with another one,
   * within the same deadline and as the same attempt. That is as safe as any retry: it was refused, not taken.
   */
  #logsInAgain(reusable: boolean): boolean {
    const { token } = this
    if (this.#status !== refusedStatus || token === null || this.#settled) return false
    if (this.#isLoggedInAgain) {
      this.#owner.refusedAgain(token)
      return false
    }
    if (!this.#owner.mayLogInAgain(token)) return false
    if (this.#sink.sendAgain?.('token') === false) {
      this.fail('no_token', mayNotGoAfterToken)
      return true
    }
    this.#isLoggedInAgain = true
    this.#written = false
    this.#answered = false
    this.#status = 0
    this.#isEncoded = false
    this.#retryAfterMs = null
    this.#received = 0
    this.#kept = null
    this.#fields = null
    this.#owner.logInAgain(this, reusable)
    return true
  }

  /** The caller still holds the connection, so nothing ends at once. */
  #mayNotGoAgain(): void {
    this.starting = true
    if (this.#isLoggedInAgain) this.fail('no_token', mayNotGoAfterToken)
    else this.fail('network', 'its connection ended, and the request may not be sent again')
    this.starting = false
  }

  #settleByStatus(reusable: boolean): void {
    if (this.#logsInAgain(reusable)) return
    const status = this.#status
    const kind = outcomeKindOf(status)
    const kept = this.#kept && this.#owner.secrets.strike(this.#kept, this.#keptBytes)
    const unkept =
      this.#isEncoded && this.#received > 0 ? ' (the body has a Content-Encoding and is not kept)' : ''
    this.#settle(kind, status, kept, kind === 'success' ? null : `status ${status}${unkept}`, reusable)
  }

  #settle(
    kind: OutcomeKind,
    status: number | null,
    body: Uint8Array | null,
    detail: string | null,
    reusable: boolean,
  ): void {
    if (this.#settled) return
    this.#settled = true
    const outcome: Outcome = {
      kind,
      status,
      retryAfterMs: this.#retryAfterMs,
      body,
      durationMs: performance.now() - this.#startedAt,
      detail,
      exchange: null,
    }
    if (this.#wasWritten && (kind !== 'success' || this.#owner.keepsSuccesses))
      outcome.exchange = this.#owner.exchangeOf(this, this.#fields)
    if (this.starting) {
      queueMicrotask(() => this.#end(outcome, reusable))
      return
    }
    this.#end(outcome, reusable)
  }

  #end(outcome: Outcome, reusable: boolean): void {
    // First, so that a sink that sends the next request at once finds this connection free.
    this.#owner.finish(this, reusable)
    try {
      this.#sink.onOutcome(outcome)
    } catch (error) {
      // Whoever reads from the connection has no part in it.
      setImmediate(() => {
        throw error
      })
    }
  }
}
