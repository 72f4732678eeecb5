import type { IncomingHttpHeaders } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  adminCaller,
  bearerKey,
  tokenCheck,
  type TokenRefusal,
  type TokenVerdict,
} from '../adapters/http/authorization.ts'
import type { Logger } from '../adapters/log.ts'
import type { CompanyLogin } from '../config/company-login.ts'
import { includesRole } from '../core/access/roles.ts'
import type { AccessTokens } from '../core/access/tokens.ts'
import { RequestRefused } from '../operators/check.ts'
import {
  roleOf,
  type ApiAnswer,
  type Caller,
  type Operation,
  type SessionGate,
  type StartedSession,
} from '../operators/operation.ts'
import { forbidden, forbiddenToLimited, foreign, jsonNeeded, tokenRefused, unauthorized } from './answers.ts'
import { saysJson } from './bodies.ts'
import { loginMinutes, type LoginCode, isForeign, isOverTls, SessionCookies } from './page/session.ts'

export interface AccessCheckOptions {
  /** ADMIN_TOKEN. */
  adminToken: string
  /** Those of the settings; null while there are none to look at. */
  tokens(): AccessTokens | null
  loginCode: LoginCode | null
  companyLogin: CompanyLogin | null
  /** Reads the settings on; false where that is too much. Rejects when they cannot be read. */
  lookAgain(): Promise<boolean>
  /** Learns of a refused login, and resolves when it may be answered: false when it gets no answer. */
  refused(request: LoginRequest, token: TokenRefusal): Promise<boolean>
}

interface LoginRequest {
  ip: string
  headers: IncomingHttpHeaders
}

interface AskingRequest {
  method: string
  query: unknown
  headers: IncomingHttpHeaders
}

/** Whether a request may do what it asks for. */
export type AccessDecision =
  | { caller: Caller; answer: null }
  | {
      answer: ApiAnswer
      /** The holder of a token that works, but may not do this. */
      caller: Caller | null
      /** What is wrong with the token; null when that is not the reason. */
      refused: TokenRefusal | null
      mayBeNew?: boolean
    }

/** The caller of an open operation. */
const nobody: Caller = { name: 'nobody', role: 'reader', only: null }

/**
 * Decides who sends a request, by a token in its Authorization header or, without that header, by the cookie of a session,
 * and what the sender may do.
 */
export class AccessCheck {
  readonly #options: AccessCheckOptions
  readonly #ofToken: (token: string) => TokenVerdict
  readonly #cookies: SessionCookies

  constructor(options: AccessCheckOptions) {
    const { adminToken, tokens, companyLogin } = options
    this.#options = options
    this.#ofToken = tokenCheck(adminToken, tokens)
    this.#cookies = new SessionCookies(adminToken, tokens, companyLogin)
  }

  /**
   * The one place that decides whether a request may have an operation carried out; null for a path that has none, which takes
   * any token. The operation must be the one that was routed: a path can be written in many ways.
   */
  admit(operation: Operation | null, { method, query, headers }: AskingRequest): AccessDecision {
    if (operation?.isOpen) {
      // A page elsewhere must not choose whose session a browser has.
      if (headers['sec-fetch-site'] !== undefined && isForeign(method, headers))
        return { answer: foreign, caller: null, refused: null }
      return { caller: nobody, answer: null }
    }
    const verdict = this.#judge(headers)
    if (verdict.isSession && isForeign(method, headers))
      return { answer: foreign, caller: null, refused: null }
    if ('refused' in verdict) {
      const { refused } = verdict
      const answer = tokenRefused(refused)
      const ending = refused === 'ended' && { 'Set-Cookie': this.#cookies.end(isOverTls(headers)) }
      const { mayBeNew = false } = verdict
      return {
        answer: { ...answer, headers: { ...answer.headers, ...ending } },
        caller: null,
        refused,
        mayBeNew,
      }
    }
    const { caller, isSession } = verdict
    if (isSession && !saysJson(method, headers)) return { answer: jsonNeeded, caller, refused: null }
    if (operation && !includesRole(caller.role, roleOf(operation, query)))
      return { answer: forbidden(caller, operation, query), caller, refused: null }
    if (operation && caller.only !== null && operation.forLimited !== 'part')
      return { answer: forbiddenToLimited(caller, operation), caller, refused: null }
    return { caller, answer: null }
  }

  /**
   * As `admit`, once more where the token may have been made a moment ago, at another console. Where that cannot be known,
   * no session ends.
   */
  async admitLater(operation: Operation | null, request: AskingRequest): Promise<AccessDecision> {
    const decision = this.admit(operation, request)
    if (decision.answer === null || !decision.mayBeNew) return decision
    const hasLooked = await this.#options.lookAgain().catch(() => null)
    if (hasLooked === null) return { answer: tokenRefused('unknown'), caller: null, refused: 'unknown' }
    return hasLooked ? this.admit(operation, request) : decision
  }

  /** The cookie of a person who logged in by the company's own. @param value of the claim that roles come from */
  cookieOfPerson(name: string, value: string, now: number): string {
    const isSecure = this.#options.companyLogin!.consoleUrl.startsWith('https:')
    return this.#cookies.beginPerson(name, value, now, isSecure)
  }

  gateFor(request: LoginRequest): SessionGate {
    const isSecure = isOverTls(request.headers)
    const { companyLogin } = this.#options
    return {
      companyLogin: companyLogin && new URL(companyLogin.issuer).host,
      begin: (given) => this.#begin(given, request, isSecure),
      endingCookie: () => this.#cookies.end(isSecure),
    }
  }

  /** `isSession`: it was judged by the cookie, which browsers send by themselves. */
  #judge({ authorization, cookie }: IncomingHttpHeaders): TokenVerdict & { isSession: boolean } {
    if (authorization !== undefined) {
      const token = bearerKey(authorization)
      return { ...(token === null ? { refused: 'missing' } : this.#ofToken(token)), isSession: false }
    }
    const verdict = this.#cookies.judge(cookie, Date.now())
    return verdict ? { ...verdict, isSession: true } : { refused: 'missing', isSession: false }
  }

  async #begin(
    given: { token: string } | { code: string },
    request: LoginRequest,
    isSecure: boolean,
  ): Promise<StartedSession> {
    const verdict = 'token' in given ? this.#ofToken(given.token) : this.#ofCode(given.code)
    if ('caller' in verdict)
      return { caller: verdict.caller, ...this.#cookies.begin(verdict.caller, Date.now(), isSecure) }
    if (!(await this.#options.refused(request, verdict.refused)))
      throw new RequestRefused('busy', 'too many wrong tokens come in; try again later')
    const message =
      'code' in given
        ? `the link was used before, is older than ${loginMinutes} minutes, or its console has ended: log in with ADMIN_TOKEN, which \`npm start\` keeps in .postrider/dev.env, or start again for another link`
        : unauthorized.wrong
    throw new RequestRefused('unauthorized', message)
  }

  #ofCode(code: string): TokenVerdict {
    if (!this.#options.loginCode?.use(code, Date.now())) return { refused: 'wrong' }
    return { caller: adminCaller }
  }
}

const windowMs = 60_000
/** Refused requests per window that are logged one by one, and wrong tokens that are answered without delay. */
const free = 10
const delayMs = 1_000
/** Beyond them wrong tokens get no answer at all. */
const maxWaiting = 100

/**
 * Makes guessing tokens cheap for us: beyond a few a minute wrong tokens share a line of the log, and wait for
 * their answers, on connections that end with them. The right token never waits. That guessing is hopeless is due to
 * the token's length alone.
 */
export class RefusedTokens {
  readonly #log: Logger
  #requests = 0
  #wrong = 0
  #waiting = 0
  #window: NodeJS.Timeout | null = null

  constructor(log: Logger) {
    this.#log = log
  }

  /** Counts a refused request. Resolves when it may be answered: false, at once, when it gets no answer. */
  async refused(ip: string, path: string, token: TokenRefusal): Promise<boolean> {
    this.#window ??= setTimeout(() => this.close(), windowMs).unref()
    if (++this.#requests <= free) this.#log.warn({ ip, path, token }, 'a request without the right token')
    if (token !== 'wrong' || ++this.#wrong <= free) return true
    if (this.#waiting >= maxWaiting) return false
    this.#waiting++
    await sleep(delayMs)
    this.#waiting--
    return true
  }

  /** Ends the window: reports what had no line of its own, and counts again from none. */
  close(): void {
    clearTimeout(this.#window ?? undefined)
    this.#window = null
    const [requests, wrong] = [this.#requests - free, this.#wrong]
    this.#requests = this.#wrong = 0
    if (requests > 0)
      this.#log.warn({ requests, wrong }, 'more requests without the right token within a minute')
  }
}
