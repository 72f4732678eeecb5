import type { IncomingHttpHeaders } from 'node:http'
import type { AccessTokens } from '../../core/access/tokens.ts'
import { RequestRefused } from '../../console/api/errors.ts'
import type { SessionGate, StartedSession } from '../../console/api/operation.ts'
import {
  adminTokenName,
  bearerKey,
  tokenCheck,
  type TokenRefusal,
  type TokenVerdict,
} from './authorization.ts'
import { unauthorized } from './console-answers.ts'
import type { LoginCode } from './page/login-code.ts'
import { isOverTls } from './page/request-origin.ts'
import { SessionCookies } from './page/session-cookie.ts'

export interface AccessCheckOptions {
  /** ADMIN_TOKEN. */
  adminToken: string
  /** Those of the settings; null while there are none to look at. */
  tokens(): AccessTokens | null
  loginCode: LoginCode | null
  /** Learns of a refused login, and resolves when it may be answered: false when it gets no answer. */
  refused(request: LoginRequest, token: TokenRefusal): Promise<boolean>
}

interface LoginRequest {
  ip: string
  headers: IncomingHttpHeaders
}

/** Who sends a request: by a token in its Authorization header or, without that header, by the cookie of a session. */
export class AccessCheck {
  readonly #options: AccessCheckOptions
  readonly #ofToken: (token: string) => TokenVerdict
  readonly #cookies: SessionCookies

  constructor(options: AccessCheckOptions) {
    const { adminToken, tokens } = options
    this.#options = options
    this.#ofToken = tokenCheck(adminToken, tokens)
    this.#cookies = new SessionCookies(adminToken, tokens)
  }

  /** `isSession`: it was judged by the cookie, which browsers send by themselves. */
  judge({ authorization, cookie }: IncomingHttpHeaders): TokenVerdict & { isSession: boolean } {
    if (authorization !== undefined) {
      const token = bearerKey(authorization)
      return { ...(token === null ? { refused: 'missing' } : this.#ofToken(token)), isSession: false }
    }
    const verdict = this.#cookies.judge(cookie, Date.now())
    return verdict ? { ...verdict, isSession: true } : { refused: 'missing', isSession: false }
  }

  gateFor(request: LoginRequest): SessionGate {
    const isSecure = isOverTls(request.headers)
    return {
      begin: (given) => this.#begin(given, request, isSecure),
      endingCookie: () => this.#cookies.end(isSecure),
    }
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
      'code' in given ? 'the link was used before, or its console has ended' : unauthorized.wrong
    throw new RequestRefused('unauthorized', message)
  }

  #ofCode(code: string): TokenVerdict {
    if (!this.#options.loginCode?.use(code)) return { refused: 'wrong' }
    return { caller: { name: adminTokenName, role: 'admin' } }
  }
}
