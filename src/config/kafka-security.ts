// What the variables about TLS and logins must be together: half of one would only show as a refused connection.
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
const registryVariables = ['SCHEMA_REGISTRY_USERNAME', 'SCHEMA_REGISTRY_PASSWORD'] as const

/** A line for each variable that is missing or contradicts another. One that is wrong by itself has no value. */
export function loginProblems(values: Partial<Values>, spell: (name: VariableName) => string): string[] {
  const isSet = (name: VariableName) => values[name] !== null
  const missing = (names: readonly VariableName[]) =>
    names
      .filter((name) => !isSet(name))
      .map((name) => `${spell(name)} is not set; it takes ${variables[name].takes}`)
  const allOrNone = (names: readonly VariableName[]) => (names.some(isSet) ? missing(names) : [])
  const clashing = (names: readonly VariableName[], name: VariableName, had: string) =>
    names
      .filter(isSet)
      .map((clash) => `${spell(clash)} is set, but ${spell(name)} is ${had}; take one of them away`)

  const allOAuth = [...oauthVariables, 'KAFKA_SASL_OAUTH_SCOPE'] as const
  const problems: string[] = []
  const mechanism = values.KAFKA_SASL_MECHANISM
  if (mechanism === null) {
    if ([...passwordVariables, ...allOAuth].some(isSet)) problems.push(...missing(['KAFKA_SASL_MECHANISM']))
    problems.push(...allOrNone(passwordVariables))
  } else if (mechanism === 'oauthbearer')
    problems.push(
      ...missing(oauthVariables),
      ...clashing(passwordVariables, 'KAFKA_SASL_MECHANISM', mechanism),
    )
  else if (mechanism !== undefined)
    problems.push(...missing(passwordVariables), ...clashing(allOAuth, 'KAFKA_SASL_MECHANISM', mechanism))

  if (values.KAFKA_SSL === false) problems.push(...clashing(fileVariables, 'KAFKA_SSL', 'false'))
  problems.push(...allOrNone(['KAFKA_SSL_CERT_FILE', 'KAFKA_SSL_KEY_FILE']))
  const { KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = values
  if (cert && key && !isKeyOf(cert, key))
    problems.push(
      `${spell('KAFKA_SSL_KEY_FILE')} is "${key.path}", which is not the key of ${spell('KAFKA_SSL_CERT_FILE')}; it takes ${variables.KAFKA_SSL_KEY_FILE.takes}`,
    )
  return [...problems, ...allOrNone(registryVariables)]
}

/** TLS is on where it is asked for, and where a file is given that only TLS has a use for. */
export function kafkaTlsOf(values: Values): false | KafkaTls {
  const { KAFKA_SSL_CA_FILE: ca, KAFKA_SSL_CERT_FILE: cert, KAFKA_SSL_KEY_FILE: key } = values
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
