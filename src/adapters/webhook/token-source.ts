import type { Outcome } from '../../core/delivery/outcome.ts'
import { clientLogin, refusalIn, tokenForm, tokenIn } from '../../core/login/client-credentials.ts'
import {
  noToken,
  tokenAfter,
  tokenDoubted,
  tokenFailed,
  tokenGot,
  tokenPhases,
  tokenProven,
  type TokenLife,
} from '../../core/login/token-life.ts'
import type { SignedRequest } from '../../forwarder/send/signed-request.ts'
import type {
  AttemptSink,
  EndpointClient,
  EndpointLogin,
  OAuthLogin,
  WebhookTarget,
} from '../../forwarder/send/webhook-transport.ts'

/** Waits for a token; called back once, with why there is none, or null. */
type Waiting = (problem: string | null) => void

/**
 * The tokens of one destination's requests. One is asked for at a time, however many requests need it, by a request as any
 * webhook is: its address is vetted, its time is limited, it goes the destination's way out, and trusts whom that trusts.
 * The next one is asked for beside the requests, for as long as there are any.
 */
export class TokenSource implements EndpointLogin {
  readonly #login: OAuthLogin
  readonly #endpoint: EndpointClient
  readonly #request: SignedRequest
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()
  #life: TokenLife = noToken
  #waiting: Waiting[] = []
  #timer: NodeJS.Timeout | undefined
  /** A request has gone out with the token that there is. */
  #isUsed = false
  #isClosed = false
  /** The newest tokens: what a receiver repeats of a request in flight is one of them. */
  recent: readonly string[] = []

  /**
   * @param open as WebhookTransport has it
   * @param now a steady clock, in ms
   */
  constructor(
    login: OAuthLogin,
    { tls = null, proxy = null }: Pick<WebhookTarget, 'tls' | 'proxy'>,
    open: (target: WebhookTarget) => EndpointClient,
    now: () => number,
  ) {
    this.#login = login
    this.#now = now
    const { tokenUrl, clientId, clientSecret, clientAuth, scope, audience } = login
    const isInForm = clientAuth === 'client_secret_post'
    const credentials = Buffer.from(clientLogin(clientId, clientSecret)).toString('base64')
    this.#endpoint = open({
      ...{ url: tokenUrl, contentType: 'form', tls, proxy, secrets: [clientSecret] },
      headers: {
        accept: 'application/json',
        ...(!isInForm && { authorization: `Basic ${credentials}` }),
      },
    })
    const client = isInForm ? { id: clientId, secret: clientSecret } : null
    const body = Buffer.from(tokenForm({ scope, audience, client }))
    this.#request = { body, signature: null, idempotencyKey: null }
  }

  get isReady(): boolean {
    return tokenPhases[this.#life.phase].requests === 'go' && this.#now() < this.#life.expiresAt
  }

  get problem(): string | null {
    const { phase, problem } = this.#life
    return tokenPhases[phase].requests === 'deferred' ? problem : null
  }

  begin(): void {
    this.#lapse()
    if (this.#life.phase === 'none') this.#become(tokenAfter(this.#life, 'wanted'))
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener)
  }

  forget(listener: () => void): void {
    this.#listeners.delete(listener)
  }

  /** The token for a request that goes out now; null: there is none yet. */
  use(): string | null {
    this.begin()
    if (!this.isReady) return null
    this.#isUsed = true
    if (this.#now() >= this.#life.dueAt) this.#become(tokenAfter(this.#life, 'due'))
    return this.#life.token
  }

  /** Calls back when there is a token, or none to be had; later, unless that is known. */
  wait(waiting: Waiting): void {
    this.begin()
    if (this.isReady || this.problem !== null) waiting(this.problem)
    else this.#waiting.push(waiting)
  }

  /**
   * A receiver refused it: whether another try with another token makes sense. Of many that were refused with one token,
   * the first has it replaced.
   */
  refused(token: string): boolean {
    const { phase, token: present, isDoubted } = this.#life
    if (token !== present) return tokenPhases[phase].requests !== 'deferred'
    if (isDoubted) return false
    this.#become(tokenAfter(this.#life, 'refused'))
    return true
  }

  /** A receiver refused it in a request that had it in place of another one. */
  refusedAgain(token: string): void {
    if (token === this.#life.token) this.#life = tokenDoubted(this.#life)
  }

  /** Something other than a refusal came back for it. */
  proven(token: string): void {
    if (token === this.#life.token) this.#life = tokenProven(this.#life)
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#listeners.clear()
    this.#endpoint.close()
    this.#callBack('this endpoint is closed')
  }

  /** A token that ended is none, whenever that is noticed. */
  #lapse(): void {
    const { phase, expiresAt } = this.#life
    if (tokenPhases[phase].requests === 'go' && this.#now() >= expiresAt)
      this.#become(tokenAfter(this.#life, 'lapsed'))
  }

  #become(life: TokenLife): void {
    const before = this.#life
    this.#life = life
    const { requests, isAsked } = tokenPhases[life.phase]
    if (isAsked && !tokenPhases[before.phase].isAsked) this.#ask()
    clearTimeout(this.#timer)
    if (life.dueAt !== Infinity && !this.#isClosed)
      this.#timer = setTimeout(this.#onDue, Math.max(1, life.dueAt - this.#now())).unref()
    if (requests !== 'wait') this.#callBack(this.problem)
    if (requests !== tokenPhases[before.phase].requests) for (const listener of this.#listeners) listener()
  }

  readonly #onDue = (): void => {
    const { phase, dueAt } = this.#life
    // Timers may be early.
    if (this.#now() < dueAt) this.#become(this.#life)
    // What nobody uses is left to end.
    else if (this.#isUsed || phase === 'failing') this.#become(tokenAfter(this.#life, 'due'))
  }

  #callBack(problem: string | null): void {
    const waiting = this.#waiting
    this.#waiting = []
    for (const each of waiting) each(problem)
  }

  #ask(): void {
    const askedAt = this.#now()
    this.#endpoint.send(
      this.#request,
      new TokenSink((outcome, text) => {
        if (this.#isClosed) return
        const found = outcome.kind === 'success' ? tokenIn(text) : null
        const problem = found === null ? this.#problemOf(outcome) : typeProblem(found.type)
        // It may have ended meanwhile.
        this.#lapse()
        if (found === null || problem !== null) {
          const failed = `${new URL(this.#login.tokenUrl).origin} ${problem}`
          const asked = outcome.retryAfterMs ?? 0
          this.#become(tokenFailed(this.#life, failed, this.#now(), asked, Math.random()))
          return
        }
        this.#isUsed = false
        this.recent = [found.token, ...this.recent].slice(0, 2)
        this.#become(tokenGot(this.#life, found.token, askedAt, found.lifetimeMs))
      }),
    )
  }

  #problemOf({ kind, status, body, detail }: Outcome): string {
    if (kind === 'success') return 'answers without an access_token'
    if (status === null) return `gives no token: ${detail ?? kind}`
    const { said } = refusalIn(Buffer.from(body ?? []).toString())
    return `answers ${status}${said && ` (${said})`}`
  }
}

const typeProblem = (type: string | null): string | null =>
  type?.toLowerCase() === 'bearer' ? null : 'answers with a token whose token_type is not Bearer'

/** Keeps the body of an answer. */
class TokenSink implements AttemptSink {
  readonly #chunks: Buffer[] = []
  readonly #done: (outcome: Outcome, text: string) => void

  constructor(done: (outcome: Outcome, text: string) => void) {
    this.#done = done
  }

  onBody(chunk: Buffer): void {
    // It is a window on memory that the next read writes over.
    this.#chunks.push(Buffer.from(chunk))
  }

  onOutcome(outcome: Outcome): void {
    this.#done(outcome, Buffer.concat(this.#chunks).toString())
  }
}
