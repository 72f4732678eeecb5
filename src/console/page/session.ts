// How a browser is logged in: its cookie, the code of `npm start`, and what it says of where a request comes from, which a
// page of another site cannot forge.
import { createHash, createHmac, timingSafeEqual, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { adminTokenName, type TokenVerdict } from '../../adapters/http/authorization.ts'
import type { AccessTokens } from '../../core/access/tokens.ts'
import type { Caller } from '../../operators/operation.ts'

const secondsValid = 12 * 3_600

/**
 * Sessions of the web page: a cookie that says whose it is and until when, under a MAC. There is no store, so it is valid on
 * every console with the same ADMIN_TOKEN, across restarts. It ends with its token: the key is made from the token's
 * hash, and from ADMIN_TOKEN, because the hash alone can be read in the settings log.
 */
export class SessionCookies {
  /** Browsers send a host's cookies to all of its ports; each deployment has a name of its own. */
  readonly #name: string
  readonly #adminToken: string
  readonly #tokens: () => AccessTokens | null

  /** @param tokens those of the settings; null while there are none to look at */
  constructor(adminToken: string, tokens: () => AccessTokens | null) {
    this.#adminToken = adminToken
    this.#tokens = tokens
    this.#name = `postrider_${createHmac('sha256', adminToken).update('cookie name').digest('hex').slice(0, 8)}`
  }

  /** @param now epoch ms @param isSecure the browser came over TLS */
  begin(caller: Caller, now: number, isSecure: boolean): { cookie: string; expiresAt: number } {
    const expires = Math.floor(now / 1_000) + secondsValid
    const hash = this.#holderOf(caller.name)?.hash
    if (hash === undefined) throw new Error(`token ${JSON.stringify(caller.name)} is not known`)
    const value = `${caller.name}.${expires}.${this.#mac(caller.name, expires, hash).toString('base64url')}`
    return { cookie: this.#cookie(value, secondsValid, isSecure), expiresAt: expires * 1_000 }
  }

  /** A cookie that takes the session away. */
  end(isSecure: boolean): string {
    return this.#cookie('', 0, isSecure)
  }

  /** Whose session a request carries; null without one. */
  judge(cookies: string | undefined, now: number): TokenVerdict | null {
    const value = valueOf(this.#name, cookies)
    if (value === null) return null
    const [name, expiry, mac, ...rest] = value.split('.')
    const ended = { refused: 'ended' } as const
    if (mac === undefined || rest.length > 0 || !/^\d{1,12}$/.test(expiry!)) return ended
    if (name !== adminTokenName && this.#tokens() === null) return { refused: 'unknown' }
    const holder = this.#holderOf(name!)
    if (!holder) return ended
    const right = this.#mac(name!, Number(expiry), holder.hash)
    const given = Buffer.from(mac, 'base64url')
    if (given.length !== right.length || !timingSafeEqual(given, right)) return ended
    return Number(expiry) * 1_000 > now ? { caller: { name: name!, role: holder.role } } : ended
  }

  #holderOf(name: string): { hash: string; role: Caller['role'] } | null {
    if (name === adminTokenName)
      return { hash: createHash('sha256').update(this.#adminToken).digest('base64url'), role: 'admin' }
    const found = this.#tokens()?.get(name)
    return found && found.revokedAt === null ? found : null
  }

  #mac(name: string, expires: number, hash: string): Buffer {
    const key = createHmac('sha256', this.#adminToken).update(`session of ${hash}`).digest()
    return createHmac('sha256', key).update(`${name}.${expires}`).digest()
  }

  #cookie(value: string, maxAge: number, isSecure: boolean): string {
    const secure = isSecure ? '; Secure' : ''
    return `${this.#name}=${value}; Max-Age=${maxAge}; Path=/; HttpOnly; SameSite=Strict${secure}`
  }
}

function valueOf(name: string, cookies = ''): string | null {
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
