// How a browser is logged in: its cookie, the code of `npm start`, and what it says of where a request comes from, which a
// page of another site cannot forge.
import { createHash, createHmac, timingSafeEqual, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { adminCaller, adminTokenName, type TokenVerdict } from '../../adapters/http/authorization.ts'
import type { AccessTokens } from '../../core/access/tokens.ts'
import type { CompanyLogin } from '../../config/company-login.ts'
import type { Caller } from '../../operators/operation.ts'

const secondsValid = 12 * 3_600

/** Before whose session it is, where that is no token; no token's name begins with it. */
const personMark = '~'

/** Whose session it is. */
interface Holder {
  caller: Caller
  /** What the session ends with. */
  hash: string
}

/**
 * Sessions of the web page: a cookie that says whose it is and until when, under a MAC. There is no store, so it is valid on
 * every console with the same ADMIN_TOKEN, across restarts. It ends with its token: the key is made from the token's
 * hash, and from ADMIN_TOKEN, because the hash alone can be read in the settings log. A person's, who logged in by the
 * company's own, says name and value of the roles' claim: the role is what the settings of now give for it.
 */
export class SessionCookies {
  /** Browsers send a host's cookies to all of its ports; each deployment has a name of its own. */
  readonly #name: string
  readonly #adminToken: string
  readonly #tokens: () => AccessTokens | null
  readonly #company: CompanyLogin | null

  /** @param tokens those of the settings; null while there are none to look at */
  constructor(adminToken: string, tokens: () => AccessTokens | null, company: CompanyLogin | null) {
    this.#adminToken = adminToken
    this.#tokens = tokens
    this.#company = company
    this.#name = `postrider_${createHmac('sha256', adminToken).update('cookie name').digest('hex').slice(0, 8)}`
  }

  /** @param now epoch ms @param isSecure the browser came over TLS */
  begin(caller: Pick<Caller, 'name'>, now: number, isSecure: boolean): { cookie: string; expiresAt: number } {
    return this.#begin(caller.name, secondsValid, now, isSecure)
  }

  /** @param value of the claim that roles come from */
  beginPerson(name: string, value: string, now: number, isSecure: boolean): string {
    const subject = personMark + Buffer.from(JSON.stringify([name, value])).toString('base64url')
    return this.#begin(subject, Math.floor(this.#company!.sessionMs / 1_000), now, isSecure).cookie
  }

  #begin(
    subject: string,
    seconds: number,
    now: number,
    isSecure: boolean,
  ): { cookie: string; expiresAt: number } {
    const expires = Math.floor(now / 1_000) + seconds
    const holder = this.#holderOf(subject)
    if (!holder) throw new Error(`nobody is known as ${JSON.stringify(subject)}`)
    const value = `${subject}.${expires}.${this.#mac(subject, expires, holder.hash).toString('base64url')}`
    return { cookie: this.#cookie(value, seconds, isSecure), expiresAt: expires * 1_000 }
  }

  /** A cookie that takes the session away. */
  end(isSecure: boolean): string {
    return this.#cookie('', 0, isSecure)
  }

  /** Whose session a request carries; null without one. */
  judge(cookies: string | undefined, now: number): TokenVerdict | null {
    const value = cookieValue(this.#name, cookies)
    if (value === null) return null
    const [subject, expiry, mac, ...rest] = value.split('.')
    const ended = { refused: 'ended' } as const
    if (mac === undefined || rest.length > 0 || !/^\d{1,12}$/.test(expiry!)) return ended
    const isOfSettings = subject !== adminTokenName && !subject!.startsWith(personMark)
    if (isOfSettings && this.#tokens() === null) return { refused: 'unknown' }
    const holder = this.#holderOf(subject!)
    // A token that was revoked is known; its session is over.
    if (!holder) return { ...ended, mayBeNew: isOfSettings && !this.#tokens()?.has(subject!) }
    const right = this.#mac(subject!, Number(expiry), holder.hash)
    const given = Buffer.from(mac, 'base64url')
    if (given.length !== right.length || !timingSafeEqual(given, right)) return ended
    return Number(expiry) * 1_000 > now ? { caller: holder.caller } : ended
  }

  /** Nothing of it counts before the MAC was checked. */
  #holderOf(subject: string): Holder | null {
    if (subject.startsWith(personMark)) return this.#personOf(subject.slice(1))
    if (subject === adminTokenName) {
      const hash = createHash('sha256').update(this.#adminToken).digest('base64url')
      return { caller: adminCaller, hash }
    }
    const found = this.#tokens()?.get(subject)
    if (!found || found.revokedAt !== null) return null
    const { id: name, role, only } = found
    // A version that knows of no limits takes no session of a limited token either.
    return {
      caller: { name, role, only },
      hash: only === null ? found.hash : JSON.stringify([found.hash, only]),
    }
  }

  #personOf(text: string): Holder | null {
    if (this.#company === null) return null
    let said: unknown
    try {
      said = JSON.parse(Buffer.from(text, 'base64url').toString())
    } catch {
      return null
    }
    if (!Array.isArray(said)) return null
    const [name, value] = said as unknown[]
    const grant = this.#company.roles.find((each) => each.value === value)
    if (typeof name !== 'string' || !grant) return null
    const { issuer, clientId } = this.#company
    return { caller: { name, role: grant.role, only: grant.only }, hash: JSON.stringify([issuer, clientId]) }
  }

  #mac(subject: string, expires: number, hash: string): Buffer {
    const key = createHmac('sha256', this.#adminToken).update(`session of ${hash}`).digest()
    return createHmac('sha256', key).update(`${subject}.${expires}`).digest()
  }

  #cookie(value: string, maxAge: number, isSecure: boolean): string {
    const secure = isSecure ? '; Secure' : ''
    return `${this.#name}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=Strict${secure}`
  }
}

export function cookieValue(name: string, cookies = ''): string | null {
  for (const pair of cookies.split(';')) {
    const equals = pair.indexOf('=')
    if (equals > 0 && pair.slice(0, equals).trim() === name) return pair.slice(equals + 1).trim()
  }
  return null
}

export const loginMinutes = 15

/**
 * Logs in once, and soon, in place of ADMIN_TOKEN: for a link that can be printed to a terminal, whose text may be kept
 * for long.
 */
export class LoginCode {
  readonly text = randomBytes(32).toString('base64url')
  readonly #expiresAt: number
  #isUsed = false

  /** @param now epoch ms */
  constructor(now: number) {
    this.#expiresAt = now + loginMinutes * 60_000
  }

  /** Whether it is the code, in time and for the first time. */
  use(given: string, now: number): boolean {
    const digest = (text: string) => createHash('sha256').update(text).digest()
    if (!timingSafeEqual(digest(given), digest(this.text))) return false
    if (this.#isUsed || now >= this.#expiresAt) return false
    this.#isUsed = true
    return true
  }
}

/** Whether a request that carries the session cookie may come from a page that is not ours. */
export function isForeign(method: string, headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site']
  const isSafe = method === 'GET' || method === 'HEAD'
  if (site !== undefined) return site !== 'same-origin' && !(isSafe && site === 'none')
  if (isSafe) return false
  // Browsers leave it out over plain HTTP to other machines; they send Origin with every unsafe method.
  return hostOf(headers.origin) !== headers.host?.toLowerCase()
}

/** Whether the browser talks TLS, be it to a proxy in front. Only the sender's own cookie depends on it. */
export const isOverTls = (headers: IncomingHttpHeaders): boolean =>
  headers.origin?.startsWith('https://') === true ||
  String(headers['x-forwarded-proto'] ?? '')
    .split(',')[0]!
    .trim() === 'https'

function hostOf(origin: string | undefined): string | null {
  try {
    return origin === undefined ? null : new URL(origin).host
  } catch {
    return null
  }
}
