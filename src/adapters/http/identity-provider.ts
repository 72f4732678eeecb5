import * as oidc from 'openid-client'
import type { CompanyLogin } from '../../config/company-login.ts'
import { claimOf, type Claims, type LoginFault } from '../../core/access/company-roles.ts'

/** What shows that an answer of the issuer belongs to a login that this browser began. */
export interface LoginProof {
  state: string
  nonce: string
  /** PKCE (RFC 7636): only who has it can use the code. */
  verifier: string
}

/** The issuer. */
export interface IdentityProvider {
  /** Where a browser logs in, to be sent back to `callback`, and what it must bring along. Throws LoginFailed. */
  begin(callback: string): Promise<{ url: URL; proof: LoginProof }>
  /** What the issuer says of the person who was sent back to `callback`. Throws LoginFailed. */
  claims(callback: URL, proof: LoginProof): Promise<Claims>
}

/** Its message is for the log: neither a code nor a token is in it. */
export class LoginFailed extends Error {
  readonly fault: LoginFault

  constructor(fault: LoginFault, message: string) {
    super(message)
    this.fault = fault
  }
}

/** How long the issuer has for an answer. */
const timeoutSeconds = 5
/** How long what the issuer says of itself is taken as it is. */
const knownForMs = 3_600_000

/** An OpenID Connect issuer, asked when somebody logs in, so that the console needs it for nothing else. */
export function openIdentityProvider(login: CompanyLogin): IdentityProvider {
  let known: { at: number; configuration: Promise<oidc.Configuration> } | null = null
  const configuration = () => {
    const now = performance.now()
    if (known === null || now - known.at > knownForMs) {
      const asked = { at: now, configuration: discover(login) }
      known = asked
      asked.configuration.catch(() => {
        if (known === asked) known = null
      })
    }
    return known.configuration
  }
  return {
    async begin(callback) {
      const found = await configuration()
      const proof = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
      }
      const url = oidc.buildAuthorizationUrl(found, {
        redirect_uri: callback,
        scope: login.scope,
        state: proof.state,
        nonce: proof.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(proof.verifier),
        code_challenge_method: 'S256',
      })
      return { url, proof }
    },
    async claims(callback, { state, nonce, verifier }) {
      const found = await configuration()
      try {
        const tokens = await oidc.authorizationCodeGrant(found, callback, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
        })
        const claims: Claims = tokens.claims()!
        if (hasAll(claims, login) || found.serverMetadata().userinfo_endpoint === undefined) return claims
        const further = await oidc.fetchUserInfo(found, tokens.access_token, tokens.claims()!.sub)
        return { ...further, ...claims }
      } catch (error) {
        throw failureOf(error)
      }
    },
  }
}

/** Issuers name a person's address and groups in the token, or only when they are asked once more. */
const hasAll = (claims: Claims, { rolesClaim }: CompanyLogin): boolean =>
  claimOf(claims, rolesClaim) !== undefined && claims.email !== undefined

async function discover({ issuer, clientId, clientSecret }: CompanyLogin): Promise<oidc.Configuration> {
  // Clients are registered for Basic unless it was said otherwise (OpenID Connect Discovery, 3).
  const authentication: oidc.ClientAuth = (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const secret = methods.includes('client_secret_basic') ? oidc.ClientSecretBasic : oidc.ClientSecretPost
    return secret(clientSecret!)(server, ...rest)
  }
  const execute = [oidc.enableNonRepudiationChecks]
  if (issuer.startsWith('http:')) execute.push(oidc.allowInsecureRequests)
  try {
    return await oidc.discovery(new URL(issuer), clientId, undefined, authentication, {
      execute,
      timeout: timeoutSeconds,
    })
  } catch (error) {
    throw new LoginFailed('away', `${issuer} cannot be used: ${reasonOf(error)}`)
  }
}

function failureOf(error: unknown): LoginFailed {
  if (error instanceof oidc.AuthorizationResponseError)
    return new LoginFailed('refused', `the issuer refused it: ${plain(error.error)}`)
  const { status } = error as { status?: unknown }
  const isClientRefused = error instanceof oidc.WWWAuthenticateChallengeError && status === 401
  if (isClientRefused || (error instanceof oidc.ResponseBodyError && error.error === 'invalid_client'))
    return new LoginFailed('away', 'the issuer refuses this client’s id or secret')
  const { code } = error as { code?: unknown }
  const isAway =
    isNetworkFailure(error) || code === 'OAUTH_TIMEOUT' || code === 'OAUTH_RESPONSE_IS_NOT_CONFORM'
  return new LoginFailed(isAway ? 'away' : 'wrong', `the issuer’s answer cannot be used: ${reasonOf(error)}`)
}

/** As fetch reports them; anything else that is a TypeError is a bug. */
function isNetworkFailure(error: unknown): boolean {
  return error instanceof TypeError && error.message === 'fetch failed'
}

/** Without causes, which can hold answers and tokens. */
function reasonOf(error: unknown): string {
  if (isNetworkFailure(error)) {
    const { code } = (error as { cause?: { code?: unknown } }).cause ?? {}
    return typeof code === 'string' ? `no connection (${plain(code)})` : 'no connection'
  }
  if (error instanceof oidc.ResponseBodyError) return plain(error.error)
  if (error instanceof oidc.ClientError || error instanceof oidc.WWWAuthenticateChallengeError)
    return error.message
  throw error
}

const plain = (text: string): string => text.replace(/[^\x20-\x7e]/g, '').slice(0, 100)
