// The client credentials grant of OAuth2 (RFC 6749, 4.4): what is asked, and what the answers say.

/**
 * The form that asks for a token.
 *
 * @param client where id and secret go with it rather than in a header (RFC 6749, 2.3.1)
 */
export function tokenForm({
  scope,
  audience,
  client = null,
}: {
  scope: string | null
  audience?: string | null
  client?: { id: string; secret: string } | null
}): string {
  const form = new URLSearchParams({ grant_type: 'client_credentials' })
  if (client !== null) {
    form.set('client_id', client.id)
    form.set('client_secret', client.secret)
  }
  if (scope !== null) form.set('scope', scope)
  // In no RFC for this grant, but several providers ask for it.
  if (audience) form.set('audience', audience)
  return form.toString()
}

/** User and password of Basic authentication: both in form encoding (RFC 6749, 2.3.1), which every endpoint has to take. */
export const clientLogin = (clientId: string, secret: string): string =>
  [clientId, secret].map(formEncoded).join(':')

const formEncoded = (text: string): string => new URLSearchParams({ '': text }).toString().slice(1)

export interface GrantedToken {
  token: string
  /** As it came; null where there is none. */
  type: string | null
  /** Null where it does not say. */
  lifetimeMs: number | null
}

/** Longer ones fit into no server's limit of a request's header. */
const maxTokenLength = 16_000

/** What an answer with status 200 gives; null where it holds no token that a header can carry. */
export function tokenIn(text: string): GrantedToken | null {
  const { access_token: token, token_type: type, expires_in: seconds } = jsonObject(text)
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token) || token.length > maxTokenLength) return null
  // Some endpoints write the number as a text.
  const lifetimeMs = Number(seconds) > 0 ? Number(seconds) * 1_000 : null
  return { token, type: typeof type === 'string' ? type : null, lifetimeMs }
}

/** Of what an endpoint gives as its reason. */
const maxSaidLength = 300

/** What an answer with another status says: its code (RFC 6749, 5.2), and all of it in one line. */
export function refusalIn(text: string): { code: string | null; said: string } {
  const { error, error_description: description } = jsonObject(text)
  const said = [error, description].filter((each) => typeof each === 'string').join(': ')
  return {
    code: typeof error === 'string' ? error : null,
    said: said.replace(/\s+/g, ' ').slice(0, maxSaidLength),
  }
}

export function jsonObject(text: string): Record<string, unknown> {
  try {
    const value = JSON.parse(text) as unknown
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}
