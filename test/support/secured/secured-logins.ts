// The ways to log in to `securedKafka`, as the environment of a command.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { TestAuthority } from './certificates.ts'
import type { SecuredKafka } from './secured-kafka.ts'
import { clientSecret, tokenEndpoint, type TokenEndpoint } from './token-endpoint.ts'

export type Env = Record<string, string>

export interface SecuredLogins {
  tls: Env
  byPassword(mechanism: string, user: string): Env
  byToken(client: string): Env
  /** `User:CN=<name>` to the brokers, unless it is signed by somebody whom they do not trust. */
  byCertificate(name: string, signedBy?: TestAuthority): Promise<Env>
  tokens: TokenEndpoint
  /** What nobody may ever write: passwords, and the secrets and keys of clients. */
  secrets: string[]
}

export const passwordOf = (user: string): string => `password-of-${user}`

export async function securedLogins(
  t: TestContext,
  { listeners, authority }: SecuredKafka,
): Promise<SecuredLogins> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }))
  const tokens = await tokenEndpoint(t)
  const secrets = [clientSecret]
  const tls: Env = { KAFKA_SSL_CA_FILE: authority.caFile }
  return {
    tls,
    tokens,
    secrets,
    byPassword(mechanism, user) {
      secrets.push(passwordOf(user))
      return {
        ...tls,
        KAFKA_BROKERS: listeners.passwords,
        KAFKA_SASL_MECHANISM: mechanism,
        KAFKA_SASL_USERNAME: user,
        KAFKA_SASL_PASSWORD: passwordOf(user),
      }
    },
    byToken: (client) => ({
      ...tls,
      KAFKA_BROKERS: listeners.tokens,
      KAFKA_SASL_MECHANISM: 'oauthbearer',
      KAFKA_SASL_OAUTH_TOKEN_URL: tokens.url,
      KAFKA_SASL_OAUTH_CLIENT_ID: client,
      KAFKA_SASL_OAUTH_CLIENT_SECRET: clientSecret,
      KAFKA_SASL_OAUTH_SCOPE: 'kafka',
    }),
    async byCertificate(name, signedBy = authority) {
      const { cert, key } = await signedBy.issue({ names: [name] })
      const pair = await mkdtemp(join(folder, `${name}-`))
      const [certFile, keyFile] = [join(pair, 'cert.pem'), join(pair, 'key.pem')]
      await writeFile(certFile, cert)
      await writeFile(keyFile, key)
      // Of a key's lines, those that no other key has.
      secrets.push(...key.split(/\r?\n/).filter((line) => /^[\w+/=]{40,}$/.test(line)))
      return {
        ...tls,
        KAFKA_BROKERS: listeners.certificates,
        KAFKA_SSL_CERT_FILE: certFile,
        KAFKA_SSL_KEY_FILE: keyFile,
      }
    },
  }
}
