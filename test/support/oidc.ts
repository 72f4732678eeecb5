import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import type { OAuthLogin } from '../../src/forwarder/send/webhook-transport.ts'
import type { ServerCertificate } from './secured/certificates.ts'

/** oidc-provider, as the token endpoint of one client; ended after the test. */
export interface OidcProvider {
  tokenUrl: string
  /** What a destination `crm` logs in with. */
  login: OAuthLogin
  /** Tokens given so far. */
  readonly issued: string[]
  /** Requests for one so far. */
  asked(): number
  /** The next requests wait until this is called again with null. */
  hold(until: Promise<void> | null): void
  stop(): Promise<void>
  start(): Promise<void>
}

const clientId = 'the client'
export const oidcSecret = 's3cret of %the+client/='

interface Koa {
  path: string
  status: number
  body: { access_token?: string }
}

/** As far as these tests use it: it brings no types. */
interface ProviderModule {
  Provider: new (
    issuer: string,
    configuration: object,
  ) => {
    use(middleware: (context: Koa, next: () => Promise<void>) => Promise<void>): void
    callback(): RequestListener
  }
}

export async function startOidcProvider(
  t: TestContext,
  {
    lifetimeSeconds = 3_600,
    tls,
    clientAuth = 'client_secret_basic',
  }: { lifetimeSeconds?: number; tls?: ServerCertificate; clientAuth?: OAuthLogin['clientAuth'] } = {},
): Promise<OidcProvider> {
  // It warns of what is meant for tests.
  t.mock.method(console, 'warn', () => {})
  const { Provider } = (await import('oidc-provider' as string)) as ProviderModule
  const provider = new Provider('http://127.0.0.1', {
    clients: [
      {
        ...{
          client_id: clientId,
          client_secret: oidcSecret,
          token_endpoint_auth_method: clientAuth,
        },
        ...{ grant_types: ['client_credentials'], redirect_uris: [], response_types: [] },
      },
    ],
    features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    scopes: ['calls'],
    ttl: { ClientCredentials: lifetimeSeconds },
  })
  const issued: string[] = []
  let asked = 0
  let held: Promise<void> | null = null
  provider.use(async (context, next) => {
    if (context.path === '/token') asked++
    await held
    await next()
    if (context.path === '/token' && context.status === 200) issued.push(context.body.access_token!)
  })
  let server: Server | null = null
  let port = 0
  const stop = async () => {
    const open = server
    server = null
    if (open === null) return
    open.close()
    open.closeAllConnections()
    await once(open, 'close')
  }
  const start = async () => {
    server = tls ? createSecureServer(tls, provider.callback()) : createServer(provider.callback())
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  await start()
  t.after(stop)
  const tokenUrl = `${tls ? 'https' : 'http'}://127.0.0.1:${port}/token`
  return {
    tokenUrl,
    login: {
      ...{ owner: 'crm', tokenUrl, clientId, clientSecret: oidcSecret, clientAuth },
      ...{ scope: 'calls', audience: null },
    },
    issued,
    asked: () => asked,
    hold: (until) => void (held = until),
    stop,
    start,
  }
}
