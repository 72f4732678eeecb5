// What the variables about TLS and logins to the brokers must be together.
import { isKeyOf } from './pem.ts'
import type { PemFile } from './pem.ts'
import type { Values, VariableName } from './variables.ts'
import { variables } from './variables.ts'

/** TLS to the brokers. What is null is Node's own choice, or not used. */
export interface KafkaTls {
  /** The only roots to trust. */
  ca: PemFile | null
  cert: PemFile | null
  key: PemFile | null
}

export interface KafkaPassword {
  mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512'
  username: string
  password: string
}

/** A login by tokens of the client credentials grant (RFC 6749, 4.4). */
export interface KafkaOAuth {
  mechanism: 'oauthbearer'
  tokenUrl: string
  clientId: string
  clientSecret: string
  scope: string | null
}

const passwordVariables = ['KAFKA_SASL_USERNAME', 'KAFKA_SASL_PASSWORD'] as const
const oauthVariables = [
  'KAFKA_SASL_OAUTH_TOKEN_URL',
  'KAFKA_SASL_OAUTH_CLIENT_ID',
  'KAFKA_SASL_OAUTH_CLIENT_SECRET',
] as const
const fileVariables = ['KAFKA_SSL_CA_FILE', 'KAFKA_SSL_CERT_FILE', 'KAFKA_SSL_KEY_FILE'] as const

/**
 * A line for each variable that is missing or contradicts another. `isSet` says whether the environment has one,
 * `value` what it holds, undefined where that is wrong by itself.
 */
export function kafkaSecurityProblems(
  isSet: (name: VariableName) => boolean,
  value: <N extends VariableName>(name: N) => Values[N] | undefined,
  spell: (name: VariableName) => string,
): string[] {
  const missing = (names: readonly VariableName[]) =>
    names
      .filter((name) => !isSet(name))
      .map((name) => `${spell(name)} is not set; it takes ${variables[name].takes}`)
  const clashing = (names: readonly VariableName[], name: VariableName, had: string) =>
    names
      .filter(isSet)
      .map((clash) => `${spell(clash)} is set, but ${spell(name)} is ${had}; take one of them away`)

  const allOAuth = [...oauthVariables, 'KAFKA_SASL_OAUTH_SCOPE'] as const
  const mechanism = value('KAFKA_SASL_MECHANISM')
  const login = !isSet('KAFKA_SASL_MECHANISM')
    ? [...passwordVariables, ...allOAuth].some(isSet)
      ? [
          ...missing(['KAFKA_SASL_MECHANISM']),
          ...(passwordVariables.some(isSet) ? missing(passwordVariables) : []),
        ]
      : []
    : mechanism === undefined
      ? []
      : mechanism === 'oauthbearer'
        ? [...missing(oauthVariables), ...clashing(passwordVariables, 'KAFKA_SASL_MECHANISM', mechanism)]
        : [...missing(passwordVariables), ...clashing(allOAuth, 'KAFKA_SASL_MECHANISM', mechanism ?? '')]

  const [cert, key] = [value('KAFKA_SSL_CERT_FILE'), value('KAFKA_SSL_KEY_FILE')]
  const pair = ['KAFKA_SSL_CERT_FILE', 'KAFKA_SSL_KEY_FILE'] as const
  return [
    ...login,
    ...(value('KAFKA_SSL') === false ? clashing(fileVariables, 'KAFKA_SSL', 'false') : []),
    ...(pair.some(isSet) ? missing(pair) : []),
    ...(cert && key && !isKeyOf(cert, key)
      ? [
          `${spell(pair[1])} is "${key.path}", which is not the key of ${spell(pair[0])}; it takes ${variables[pair[1]].takes}`,
        ]
      : []),
  ]
}

/** TLS is on where it is asked for, and where a file is given that only TLS has a use for. */
export function kafkaTlsOf(values: Values): false | KafkaTls {
  const [ca, cert, key] = fileVariables.map((name) => values[name]) as [
    PemFile | null,
    PemFile | null,
    PemFile | null,
  ]
  const isOn = values.KAFKA_SSL ?? (ca ?? cert ?? key) !== null
  return isOn && { ca, cert, key }
}

export function kafkaLoginOf(values: Values): KafkaPassword | KafkaOAuth | null {
  const mechanism = values.KAFKA_SASL_MECHANISM
  if (mechanism === null) return null
  if (mechanism !== 'oauthbearer')
    return { mechanism, username: values.KAFKA_SASL_USERNAME!, password: values.KAFKA_SASL_PASSWORD! }
  return {
    mechanism,
    tokenUrl: values.KAFKA_SASL_OAUTH_TOKEN_URL!,
    clientId: values.KAFKA_SASL_OAUTH_CLIENT_ID!,
    clientSecret: values.KAFKA_SASL_OAUTH_CLIENT_SECRET!,
    scope: values.KAFKA_SASL_OAUTH_SCOPE,
  }
}

/** Settings that work and still reveal a secret to listeners on the network: a line each, for the log. */
export function kafkaSecurityWarnings({
  ssl,
  sasl,
}: {
  ssl: false | KafkaTls
  sasl: KafkaPassword | KafkaOAuth | null
}): string[] {
  if (sasl === null) return []
  const warnings: string[] = []
  if (!ssl)
    warnings.push(
      sasl.mechanism === 'plain'
        ? 'the password goes to the brokers in clear text: set KAFKA_SSL=true, or use a SCRAM mechanism'
        : sasl.mechanism === 'oauthbearer'
          ? 'tokens, which are as good as passwords, go to the brokers in clear text: set KAFKA_SSL=true'
          : 'the login to the brokers is not encrypted, so its password can be guessed by who listens: set KAFKA_SSL=true',
    )
  if (sasl.mechanism === 'oauthbearer' && sasl.tokenUrl.startsWith('http:'))
    warnings.push('the client secret goes to KAFKA_SASL_OAUTH_TOKEN_URL in clear text: use an https URL')
  return warnings
}
