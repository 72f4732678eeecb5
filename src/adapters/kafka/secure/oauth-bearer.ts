import type { AuthenticationProviderArgs, Mechanism } from 'kafkajs'
import type { KafkaOAuth } from '../../../config/kafka-security.ts'
import { messageOf } from '../../../errors.ts'
import { OAuthTokens, subjectOfToken, TokenError } from './oauth-token.ts'

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
        const answer = await exchange(
          saslAuthenticate,
          `n,,${separator}auth=Bearer ${token}${separator}${separator}`,
        )
        if (answer === '') return
        tokens.forget(token)
        // The broker waits for this before it gives its error and closes.
        const said = await exchange(saslAuthenticate, separator).catch(messageOf)
        throw new TokenError(
          true,
          `Kafka refuses the token of client ${JSON.stringify(login.clientId)} (SASL OAUTHBEARER: ${said || answer}): check KAFKA_SASL_OAUTH_… and how the brokers check tokens`,
        )
      },
    }),
  }
}

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
