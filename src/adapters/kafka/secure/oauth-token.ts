import kafkajs, { type AuthenticationProviderArgs, type Mechanism } from 'kafkajs'
import type { Dispatcher } from 'undici'
import type { KafkaOAuth } from '../../../config/kafka-security.ts'
import {
  clientLogin,
  jsonObject,
  refusalIn,
  tokenForm,
  tokenIn,
} from '../../../core/login/client-credentials.ts'
import { messageOf } from '../../../errors.ts'

const { KafkaJSError } = kafkajs

/**
 * A token could not be had. `isRefused`: it was refused, and will be until a setting is changed; else the endpoint is
 * away, and the same may work later. The message never holds a secret. It is one of kafkajs's errors, so that kafkajs
 * and callers treat it like any other error that keeps them from a broker.
 */
export class TokenError extends KafkaJSError {
  /** By the name of a connection's error kafkajs drops the connection, on which a login has begun that cannot go on. */
  override readonly name: string
  readonly isRefused: boolean

  constructor(isRefused: boolean, message: string, options?: { cause?: unknown }) {
    // kafkajs's types leave out the cause.
    super(message, { ...options, retriable: !isRefused } as { retriable: boolean })
    this.name = isRefused ? 'KafkaJSTokenError' : 'KafkaJSConnectionError'
    this.isRefused = isRefused
  }
}

export interface TokenOptions {
  /** The whole answer must be there by then, in ms. */
  timeoutMs?: number
  /** Epoch milliseconds. */
  now?: () => number
}

interface Token {
  value: string
  /** Used for new logins until then, epoch ms. */
  freshUntil: number
}

/** Of a token's lifetime, what is left when the next one is asked for; as other Kafka clients do. */
const renewalShare = 0.2
/** kafkajs renews a login 10 s before it ends, and by then needs a token that lives longer than the one before. */
const minRenewalMs = 15_000
/** Where the answer does not say how long its token lives. */
const unknownLifetimeMs = 60_000
const maxAnswerBytes = 256 * 1_024

/**
 * Tokens of the client credentials grant (RFC 6749, 4.4). One is asked for when there is none that is fresh; logins that
 * need it at the same time share one request.
 */
export class OAuthTokens {
  readonly #login: KafkaOAuth
  readonly #timeoutMs: number
  readonly #now: () => number
  #token: Token | null = null
  #asking: Promise<Token> | null = null

  constructor(login: KafkaOAuth, { timeoutMs = 10_000, now = Date.now }: TokenOptions = {}) {
    this.#login = login
    this.#timeoutMs = timeoutMs
    this.#now = now
  }

  /** Throws TokenError. */
  async token(): Promise<string> {
    if (this.#token && this.#now() < this.#token.freshUntil) return this.#token.value
    this.#asking ??= this.#ask().finally(() => (this.#asking = null))
    this.#token = await this.#asking
    return this.#token.value
  }

  /** A token that a broker refused is not used again. */
  forget(token: string): void {
    if (this.#token?.value === token) this.#token = null
  }

  async #ask(): Promise<Token> {
    const { tokenUrl, clientId, clientSecret, scope } = this.#login
    const credentials = clientLogin(clientId, clientSecret)
    const askedAt = this.#now()
    let status: number
    let text: string
    try {
      // Read only here: other logins do without it.
      const { request } = await import('undici')
      const answer = await request(tokenUrl, {
        method: 'POST',
        headers: {
          accept: 'application/json',
          authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: tokenForm({ scope }),
        signal: AbortSignal.timeout(this.#timeoutMs),
      })
      status = answer.statusCode
      text = await textOf(answer.body)
    } catch (error) {
      throw unreachable(tokenUrl, error, this.#timeoutMs)
    }
    if (status !== 200) throw this.#refusal(status, text)
    const found = tokenIn(text)
    if (found === null)
      throw new TokenError(
        true,
        `${tokenUrl} answers 200 without an access_token: check KAFKA_SASL_OAUTH_TOKEN_URL`,
      )
    const { token: value } = found
    const lifetimeMs = found.lifetimeMs ?? unknownLifetimeMs
    const renewalMs = Math.max(lifetimeMs * renewalShare, minRenewalMs)
    return { value, freshUntil: askedAt + lifetimeMs - renewalMs }
  }

  #refusal(status: number, text: string): TokenError {
    const { tokenUrl, clientId } = this.#login
    const { code, said } = refusalIn(text)
    const answer = `${status}${said && ` (${said})`}`
    if (status >= 500 || status === 429 || status === 408)
      return new TokenError(false, `no token for the brokers: ${tokenUrl} answers ${answer}`)
    const check =
      code === 'invalid_scope'
        ? 'KAFKA_SASL_OAUTH_SCOPE'
        : code === null && status !== 401
          ? 'KAFKA_SASL_OAUTH_TOKEN_URL'
          : 'KAFKA_SASL_OAUTH_CLIENT_ID and KAFKA_SASL_OAUTH_CLIENT_SECRET'
    return new TokenError(
      true,
      `${tokenUrl} refuses a token to client ${JSON.stringify(clientId)} with ${answer}: check ${check}`,
    )
  }
}

/** The user that brokers take a token's holder for, unless they are configured to read another claim; null if it is no JWT. */
export function subjectOfToken(token: string): string | null {
  const claims = jsonObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  return typeof claims.sub === 'string' ? claims.sub : null
}

async function textOf(body: Dispatcher.ResponseData['body']): Promise<string> {
  let text = ''
  body.setEncoding('utf8')
  for await (const chunk of body) {
    text += chunk as string
    if (text.length > maxAnswerBytes) throw new Error(`the answer has more than ${maxAnswerBytes} bytes`)
  }
  return text
}

/** Errors of TLS that say that a certificate is not good, which does not change by itself. */
const untrusted = /CERT|SELF_SIGNED|UNABLE_TO_/

function unreachable(tokenUrl: string, error: unknown, timeoutMs: number): TokenError {
  const { code = '', name } = error as NodeJS.ErrnoException
  if (typeof code === 'string' && untrusted.test(code))
    return new TokenError(
      true,
      `the certificate of ${tokenUrl} is not trusted (${messageOf(error)}): NODE_EXTRA_CA_CERTS adds roots`,
      { cause: error },
    )
  const why = name === 'TimeoutError' ? `no answer within ${timeoutMs} ms` : messageOf(error) || code
  return new TokenError(false, `no token for the brokers: ${tokenUrl} cannot be reached (${why})`, {
    cause: error,
  })
}

const separator = '\u0001'

/**
 * SASL OAUTHBEARER (RFC 7628) for kafkajs. Its own takes every login for a success: a broker that refuses a token
 * says so in an answer without an error, which kafkajs does not read, and then closes the connection.
 *
 * Throws TokenError, also where the broker refuses the token.
 * @param onSubject called with the subject of the tokens
 */
export function oauthBearer(login: KafkaOAuth, onSubject: (subject: string | null) => void): Mechanism {
  const tokens = new OAuthTokens(login)
  return {
    mechanism: login.mechanism,
    authenticationProvider: ({ saslAuthenticate }) => ({
      async authenticate() {
        const token = await tokens.token()
        onSubject(subjectOfToken(token))
        const message = `n,,${separator}auth=Bearer ${token}${separator}${separator}`
        let said: string
        try {
          const answer = await exchange(saslAuthenticate, message)
          if (answer === '') return
          // The broker waits for this before it gives its error and closes.
          said = (await exchange(saslAuthenticate, separator).catch(messageOf)) || answer
        } catch (error) {
          // Some brokers refuse it at once.
          if (!isRefusedLogin(error)) throw error
          said = messageOf(error)
        }
        tokens.forget(token)
        throw new TokenError(
          true,
          `Kafka refuses the token of client ${JSON.stringify(login.clientId)} (SASL OAUTHBEARER: ${said}): check KAFKA_SASL_OAUTH_… and how the brokers check tokens`,
        )
      },
    }),
  }
}

const isRefusedLogin = (error: unknown): boolean =>
  error instanceof Error && 'type' in error && error.type === 'SASL_AUTHENTICATION_FAILED'

/** Sends one message and gives the broker's. */
async function exchange(
  saslAuthenticate: AuthenticationProviderArgs['saslAuthenticate'],
  message: string,
): Promise<string> {
  const bytes = Buffer.from(message)
  const size = Buffer.alloc(4)
  size.writeInt32BE(bytes.length)
  const answer = await saslAuthenticate<string>({
    request: { encode: () => Buffer.concat([size, bytes]) },
    // With its size before it.
    response: { decode: (payload) => payload, parse: (payload) => payload.toString('utf8', 4) },
  })
  return answer ?? ''
}
