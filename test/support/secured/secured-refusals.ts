import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { createServer } from 'node:tls'
import { createAuthority } from './certificates.ts'
import type { SecuredKafka } from './secured-kafka.ts'
import type { Env, SecuredLogins } from './secured-logins.ts'

/** Every way in which `securedKafka` takes no one in, by what is wrong, and the line that names it. User `ann` exists. */
export async function refusalsOf(
  t: TestContext,
  { listeners, authority }: SecuredKafka,
  ways: SecuredLogins,
): Promise<Record<string, [env: Env, line: RegExp]>> {
  const byPassword = ways.byPassword('plain', 'ann')
  const [scram256, scram512] = [
    ways.byPassword('scram-sha-256', 'ann'),
    ways.byPassword('scram-sha-512', 'ann'),
  ]
  const byToken = ways.byToken('ann')
  const byCertificate = await ways.byCertificate('ann')
  const { KAFKA_SSL_CA_FILE: _, ...withoutCa } = byPassword
  const {
    KAFKA_SASL_MECHANISM: _mechanism,
    KAFKA_SASL_USERNAME: _user,
    KAFKA_SASL_PASSWORD: _password,
    ...anonymous
  } = byPassword
  const stranger = await createAuthority(t)
  const elsewhere = await authority.issue({ names: ['elsewhere.test'], addresses: [] })
  const expired = await authority.issue({ expired: true })
  return {
    'a wrong password (PLAIN)': [
      { ...byPassword, KAFKA_SASL_PASSWORD: 'wrong' },
      /^Kafka refuses the login of user ann \(SASL PLAIN\): check KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD/,
    ],
    'a wrong password (SCRAM-SHA-256)': [
      { ...scram256, KAFKA_SASL_PASSWORD: 'wrong' },
      /^Kafka refuses the login of user ann \(SASL SCRAM-SHA-256\): check/,
    ],
    'an unknown user (SCRAM-SHA-512)': [
      { ...scram512, KAFKA_SASL_USERNAME: 'nobody' },
      /^Kafka refuses the login of user nobody \(SASL SCRAM-SHA-512\): check/,
    ],
    'a wrong client secret': [
      { ...byToken, KAFKA_SASL_OAUTH_CLIENT_SECRET: 'wrong' },
      /token refuses a token to client "ann" with 401 \(invalid_client: no such client\): check KAFKA_SASL_OAUTH_CLIENT_ID and/,
    ],
    'a wrong scope': [
      { ...byToken, KAFKA_SASL_OAUTH_SCOPE: 'mail' },
      /refuses a token to client "ann" with 400 \(invalid_scope\): check KAFKA_SASL_OAUTH_SCOPE/,
    ],
    'a token that the brokers do not take': [
      ways.byToken('stale'),
      /^Kafka refuses the token of client "stale" \(SASL OAUTHBEARER: .*\): check KAFKA_SASL_OAUTH_/,
    ],
    'a mechanism that the brokers do not take': [
      { ...byToken, KAFKA_BROKERS: listeners.passwords },
      /^the brokers do not take SASL OAUTHBEARER: check KAFKA_SASL_MECHANISM/,
    ],
    'a login where none is taken': [
      { ...byPassword, ...byCertificate },
      /^the brokers take no SASL login at this port: check KAFKA_BROKERS, or unset KAFKA_SASL_MECHANISM/,
    ],
    'no login where one is asked for': [
      anonymous,
      /^the brokers ask for a login \(SASL .*SCRAM-SHA-512.*\): set KAFKA_SASL_MECHANISM/,
    ],
    'no CA file': [
      { ...withoutCa, KAFKA_SSL: 'true' },
      /^the brokers' certificate is not trusted \(unable to verify the first certificate\): set KAFKA_SSL_CA_FILE/,
    ],
    'the CA file of another authority': [
      { ...byPassword, KAFKA_SSL_CA_FILE: stranger.caFile },
      /^the brokers' certificate is not trusted \(.*\): KAFKA_SSL_CA_FILE does not hold the authority/,
    ],
    'a certificate for another name': [
      { ...byPassword, KAFKA_BROKERS: (await tlsServer(t, elsewhere)).replace('127.0.0.1', 'localhost') },
      /^the brokers' certificate is for other names \(.*elsewhere\.test.*\): give one of its names in KAFKA_BROKERS/,
    ],
    'a certificate that has expired': [
      { ...byPassword, KAFKA_BROKERS: await tlsServer(t, expired) },
      /^the brokers' certificate is not valid now \(certificate has expired\): renew it/,
    ],
    'no client certificate': [
      { KAFKA_BROKERS: listeners.certificates, ...ways.tls },
      /^the brokers ask for a client certificate: set KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE/,
    ],
    'a client certificate of another authority': [
      await ways.byCertificate('ann', stranger),
      /^the brokers refuse the client certificate \(.*\): check KAFKA_SSL_CERT_FILE/,
    ],
    'no TLS at a port with TLS': [
      { ...byPassword, KAFKA_SSL_CA_FILE: '' },
      /^the brokers speak TLS at this port: set KAFKA_SSL=true, or check the port/,
    ],
    'no TLS at a port that wants a certificate': [
      { KAFKA_BROKERS: listeners.certificates },
      /^the brokers speak TLS at this port: set KAFKA_SSL=true/,
    ],
    'TLS at a port without': [
      { ...ways.tls, KAFKA_BROKERS: listeners.open },
      /^the brokers do not speak TLS at this port: check the port in KAFKA_BROKERS, or KAFKA_SSL/,
    ],
  }
}

/** A server that is no Kafka but has this certificate; `host:port`. */
async function tlsServer(t: TestContext, { cert, key }: { cert: string; key: string }): Promise<string> {
  const server = createServer({ cert, key }).on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `127.0.0.1:${(server.address() as AddressInfo).port}`
}
