import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { CompanyLogin } from '../../src/config/company-login.ts'

/** What the issuer says of a person beside the name. */
export interface IssuedPerson {
  email?: string
  emailVerified?: boolean
  groups?: string[]
}

/** oidc-provider, as a company's own login; ended after the test. */
export interface CompanyIssuer {
  issuer: string
  /** What a console at this address is started with. */
  settings(consoleUrl: string, changes?: Partial<CompanyLogin>): CompanyLogin
  /** By the name that is typed into the form. */
  readonly people: Map<string, IssuedPerson>
  /** Codes, tokens and secrets so far, none of which may be seen anywhere else. */
  readonly secrets: string[]
  /** The next ID tokens have this nonce; null: the right one. */
  forgeNonce(nonce: string | null): void
  stop(): Promise<void>
  start(): Promise<void>
}

export const clientSecret = 's3cret of the+console/='

interface Koa {
  path: string
  status: number
  body: unknown
  oidc?: {
    session: { accountId: string }
    client: { clientId: string }
    entities: { AuthorizationCode?: { nonce: string } }
  }
  response: { get(name: string): string }
}

interface Grant {
  addOIDCScope(scope: string): void
  save(): Promise<void>
}

/** As far as these tests use it: it brings no types. */
interface Provider {
  Grant: new (of: { clientId: string; accountId: string }) => Grant
  use(middleware: (context: Koa, next: () => Promise<void>) => Promise<void>): void
  on(event: string, listener: (context: Koa, error: Error) => void): void
  callback(): RequestListener
  interactionDetails(request: IncomingMessage, response: ServerResponse): Promise<object>
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
}

/** @param inUserinfo the ID token names nobody's address and groups: the console has to ask once more */
export async function startCompanyIssuer(
  t: TestContext,
  { redirectTo, inUserinfo = false }: { redirectTo: string; inUserinfo?: boolean },
): Promise<CompanyIssuer> {
  // It warns of what is meant for tests.
  t.mock.method(console, 'warn', () => {})
  t.mock.method(console, 'info', () => {})
  const { Provider } = (await import('oidc-provider' as string)) as {
    Provider: new (issuer: string, configuration: object) => Provider
  }
  let server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  // Another site than the console's, to a browser.
  const issuer = `http://localhost:${port}`
  const people = new Map<string, IssuedPerson>()
  const secrets: string[] = [clientSecret]
  let forged: string | null = null
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: 'the console',
        client_secret: clientSecret,
        redirect_uris: [`${redirectTo}/login/callback`],
        response_types: ['code'],
        grant_types: ['authorization_code'],
      },
    ],
    cookies: { keys: ['a key of the cookies of tests'] },
    pkce: { required: () => true },
    conformIdTokenClaims: inUserinfo,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_: unknown, sub: string) => ({
      accountId: sub,
      claims: async () => {
        const { email, emailVerified = true, groups } = people.get(sub) ?? {}
        return { sub, ...(email && { email, email_verified: emailVerified }), ...(groups && { groups }) }
      },
    }),
    async loadExistingGrant({ oidc }: Koa) {
      const { session, client } = oidc!
      const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId })
      grant.addOIDCScope('openid email groups')
      await grant.save()
      return grant
    },
  })
  provider.use(async (context, next) => {
    await next()
    const code = /[?&]code=([^&]+)/.exec(context.response.get('location'))?.[1]
    if (code) secrets.push(code)
    if (context.path !== '/token' || context.status !== 200) return
    const { access_token, id_token } = context.body as Record<string, string>
    secrets.push(access_token!, id_token!)
  })
  // A code is kept with the nonce that its ID token gets.
  const { AuthorizationCode } = provider as unknown as {
    AuthorizationCode: { prototype: { consume(): Promise<void>; nonce: string } }
  }
  const { consume } = AuthorizationCode.prototype
  AuthorizationCode.prototype.consume = async function (this: typeof AuthorizationCode.prototype) {
    if (forged !== null) this.nonce = forged
    await consume.call(this)
  }
  const protocol = provider.callback()
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    if (!request.url!.startsWith('/interaction/')) return protocol(request, response)
    const { searchParams } = new URL(request.url!, issuer)
    const login = searchParams.get('person')
    if (searchParams.has('cancel'))
      return provider.interactionFinished(request, response, { error: 'access_denied' })
    if (login !== null)
      return provider.interactionFinished(request, response, { login: { accountId: login } })
    response.setHeader('Content-Type', 'text/html; charset=utf-8')
    response.end(
      '<!doctype html><html lang="en"><title>Company</title><h1>Company</h1><form><label>Name <input name="person"></label><button>Go on</button></form>',
    )
  }
  const listener: RequestListener = (request, response) => {
    answer(request, response).catch((error: unknown) => response.writeHead(500).end(String(error)))
  }
  server.on('request', listener)
  const stop = async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    server.closeAllConnections()
    await closed
  }
  t.after(stop)
  return {
    issuer,
    settings: (consoleUrl, changes = {}) => ({
      issuer,
      clientId: 'the console',
      clientSecret,
      scope: 'openid email groups',
      rolesClaim: 'groups',
      roles: [
        { value: 'platform', role: 'admin', only: null },
        { value: 'support', role: 'operator', only: null },
      ],
      sessionMs: 8 * 3_600_000,
      consoleUrl,
      ...changes,
    }),
    people,
    secrets,
    forgeNonce: (nonce) => void (forged = nonce),
    stop,
    async start() {
      server = createServer(listener)
      server.listen(port, '127.0.0.1')
      await once(server, 'listening')
    },
  }
}
