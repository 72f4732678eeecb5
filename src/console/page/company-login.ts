// Login by the company's own: OpenID Connect, authorization code with PKCE. The two paths that browsers are sent to.
import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { LoginFailed, type IdentityProvider, type LoginProof } from '../../adapters/http/identity-provider.ts'
import type { Logger } from '../../adapters/log.ts'
import type { CompanyLogin } from '../../config/company-login.ts'
import { grantOf, personName, type LoginFault } from '../../core/access/company-roles.ts'
import { companyLoginPath, pageAt } from '../page-paths.ts'
import { cookieValue, isForeign } from './session.ts'

const callbackPath = '/login/callback'

/** How long a login at the issuer may take. */
const minutesToLogIn = 10

/** A login that has begun, as its browser keeps it. */
interface BegunLogin extends LoginProof {
  /** The page that was asked for. */
  to: string
  /** Epoch ms. */
  expiresAt: number
}

/**
 * Cookies of logins that have begun. They are sealed, so that nothing is stored, any console can finish what another one
 * began, and the issuer's code alone is of no use to whoever reads what browsers keep.
 */
export class BegunLogins {
  readonly #name: string
  readonly #key: Buffer

  constructor(adminToken: string) {
    const derived = (purpose: string) => createHmac('sha256', adminToken).update(purpose).digest()
    this.#name = `postrider_login_${derived('name of begun logins').toString('hex').slice(0, 8)}`
    this.#key = derived('key of begun logins')
  }

  begin(proof: LoginProof, to: string, now: number, isSecure: boolean): string {
    const begun: BegunLogin = { ...proof, to, expiresAt: now + minutesToLogIn * 60_000 }
    const iv = randomBytes(12)
    const cipher = createCipheriv('aes-256-gcm', this.#key, iv)
    const sealed = [iv, cipher.update(JSON.stringify(begun)), cipher.final(), cipher.getAuthTag()]
    return this.#cookie(Buffer.concat(sealed).toString('base64url'), minutesToLogIn * 60, isSecure)
  }

  /** The cookie that takes it away: a login is finished once. */
  end(isSecure: boolean): string {
    return this.#cookie('', 0, isSecure)
  }

  /** Null where this browser has begun none, or too long ago. */
  read(cookies: string | undefined, now: number): BegunLogin | null {
    const value = cookieValue(this.#name, cookies)
    if (value === null) return null
    const bytes = Buffer.from(value, 'base64url')
    if (bytes.length < 12 + 16) return null
    const decipher = createDecipheriv('aes-256-gcm', this.#key, bytes.subarray(0, 12))
    decipher.setAuthTag(bytes.subarray(-16))
    try {
      const text = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()])
      const begun = JSON.parse(text.toString()) as BegunLogin
      return begun.expiresAt > now ? begun : null
    } catch {
      return null
    }
  }

  // Lax: the issuer's page sends the browser back, and strict cookies would not come along.
  #cookie(value: string, maxAge: number, isSecure: boolean): string {
    const secure = isSecure ? '; Secure' : ''
    return `${this.#name}=${value}; Max-Age=${maxAge}; Path=${callbackPath}; HttpOnly; SameSite=Lax${secure}`
  }
}

export interface CompanyLoginRoutes {
  settings: CompanyLogin
  provider: IdentityProvider
  /** ADMIN_TOKEN. */
  adminToken: string
  /** The cookie of a session of a person with this value of the claim. */
  begin(name: string, value: string, now: number): string
  /** Learns of an answer that belongs to no login, and resolves when it may be answered: false when it gets no answer. */
  refused(request: FastifyRequest): Promise<boolean>
  log: Logger
}

/** Serves the two paths. Whatever goes wrong leads to the page, which says it and takes a token. */
export function serveCompanyLogin(app: FastifyInstance, options: CompanyLoginRoutes): void {
  const { settings, provider, begin, log } = options
  // The issuer sends browsers back to CONSOLE_URL.
  const isSecure = settings.consoleUrl.startsWith('https:')
  const begun = new BegunLogins(options.adminToken)
  /** Said once, until it is another one or a login works: anybody can begin logins. */
  let trouble: string | null = null
  const troubled = ({ fault, message }: LoginFailed) => {
    if (fault !== 'away') return log.warn({ fault, reason: message }, 'a login by the company’s own failed')
    if (message === trouble) return
    trouble = message
    log.warn({ reason: message }, 'nobody can log in by the company’s own: tokens still log in')
  }
  const config = { isOpen: true }

  app.get(companyLoginPath, { config, exposeHeadRoute: false }, async (request, reply) => {
    // Another site must not send a browser through a login that its user did not ask for.
    if (isForeign('GET', request.headers)) return leave(reply, '/')
    const to = pagePath((request.query as { to?: unknown }).to)
    try {
      const { url, proof } = await provider.begin(settings.consoleUrl + callbackPath)
      trouble = null
      const cookie = begun.begin(proof, to, Date.now(), isSecure)
      return leave(reply.header('Set-Cookie', cookie), url.href)
    } catch (error) {
      if (!(error instanceof LoginFailed)) throw error
      troubled(error)
      return leave(reply, withFault(to, error.fault))
    }
  })

  app.get(callbackPath, { config, exposeHeadRoute: false }, async (request, reply) => {
    const login = begun.read(request.headers.cookie, Date.now())
    const given = (request.query as { state?: unknown }).state
    if (login === null || given !== login.state) {
      if (!(await options.refused(request))) {
        request.raw.destroy()
        return reply.hijack()
      }
      return leave(reply, withFault('/', 'wrong'))
    }
    const ending = begun.end(isSecure)
    try {
      const claims = await provider.claims(new URL(settings.consoleUrl + request.url), login)
      const name = personName(claims)
      if (name === null) throw new LoginFailed('wrong', 'the issuer names neither a person’s email nor sub')
      const grant = grantOf(settings.roles, claims, settings.rolesClaim)
      if (grant === null)
        throw new LoginFailed(
          'no_role',
          `${name} has none of the values that CONSOLE_OIDC_ROLES names in the claim ${settings.rolesClaim}`,
        )
      log.info({ person: name, role: grant.role, ip: request.ip }, 'a person logged in')
      const cookies = [ending, begin(name, grant.value, Date.now())]
      return leave(reply.header('Set-Cookie', cookies), login.to)
    } catch (error) {
      if (!(error instanceof LoginFailed)) throw error
      troubled(error)
      return leave(reply.header('Set-Cookie', ending), withFault(login.to, error.fault))
    }
  })
}

/** In the fragment, which is sent to no server. */
const withFault = (to: string, fault: LoginFault): string => `${to}#login=${fault}`

/** A path of a page of the console, with its query; that of the first one for anything else, such as another host. */
function pagePath(given: unknown): string {
  const base = 'http://console.invalid'
  const url = typeof given === 'string' && given.startsWith('/') ? URL.parse(given, base) : null
  if (url?.origin !== base || pageAt(url.pathname) === null) return '/'
  return url.pathname + url.search
}

const leave = (reply: FastifyReply, to: string): FastifyReply => reply.redirect(to, 303)
