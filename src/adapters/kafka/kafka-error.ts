import { permissionsOn, type Permission } from '../../core/permissions.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import type { KafkaLogin } from './secure/kafka-login.ts'
import { TokenError } from './secure/oauth-token.ts'

/**
 * - `login`: the brokers do not take the user, or no token was to be had for it.
 * - `certificate`: the brokers' is not trusted, or they do not trust the client's.
 * - `listener`: the port speaks another protocol than the settings say.
 * - `permission`: the user may not do what was asked.
 * - `closed`: the connection ended without a reason, which can be any of the above, or a broker that stops.
 * - `other`: the message is the error's own.
 */
export type KafkaErrorKind = 'login' | 'certificate' | 'listener' | 'permission' | 'closed' | 'other'

export interface KafkaErrorDescription {
  kind: KafkaErrorKind
  /** One line: what it is and what to do about it. Never holds a secret. */
  message: string
  /** Trying again does not help until a person has changed something. */
  isRefusal: boolean
}

/**
 * What an error of kafkajs, or of a broker's answer (`{ type }` or `{ code }`), means to a person. Pure: what only a
 * look at the brokers can say, `explainKafkaError` says.
 * @param asked what was asked for, where the caller knows
 */
export function describeKafkaError(
  error: unknown,
  login: KafkaLogin,
  asked: readonly Permission[] = [],
): KafkaErrorDescription {
  const chain = chainOf(error)
  const uncreated = chain.filter((one) => one.name === 'KafkaJSCreateTopicError' && isDenied(one))
  if (uncreated.length > 0) {
    const topics = uncreated.map(({ topic = '' }) => topic)
    return refusal('permission', deniedMessage(login, permissionsOn('topic', topics, ['CREATE'])))
  }
  for (const describe of [byToken, byCertificate, bySasl, byPermission, byListener, byClosing])
    for (const one of chain) {
      const found = describe(one, login, asked)
      if (found !== null) return found
    }
  return { kind: 'other', message: messageOf(error), isRefusal: false }
}

interface BrokerError extends Error {
  type?: string
  /** A number where a broker gave it, else Node's. */
  code?: unknown
  topic?: string
}

/** An error, its causes and what it holds together, the outermost first. */
function chainOf(error: unknown): BrokerError[] {
  const chain: BrokerError[] = []
  const add = (one: unknown): void => {
    if (typeof one !== 'object' || one === null || chain.includes(one as BrokerError)) return
    chain.push(one as BrokerError)
    add((one as Error).cause)
    const { errors } = one as { errors?: unknown }
    if (Array.isArray(errors)) errors.forEach(add)
  }
  add(error)
  return chain
}

type Describe = (
  error: BrokerError,
  login: KafkaLogin,
  asked: readonly Permission[],
) => KafkaErrorDescription | null

const refusal = (kind: KafkaErrorKind, message: string): KafkaErrorDescription => ({
  kind,
  message,
  isRefusal: true,
})

const byToken: Describe = (error) =>
  error instanceof TokenError ? { kind: 'login', message: error.message, isRefusal: error.isRefused } : null

/** Node's codes for a certificate that it does not take, by what to do. */
const untrusted =
  /^(DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_[A-Z_]+|CERT_(SIGNATURE_FAILURE|UNTRUSTED|REJECTED|CHAIN_TOO_LONG)|INVALID_(CA|PURPOSE))$/
const clientAlert =
  /_ALERT_(BAD_CERTIFICATE|CERTIFICATE_REQUIRED|CERTIFICATE_UNKNOWN|CERTIFICATE_EXPIRED|CERTIFICATE_REVOKED|UNSUPPORTED_CERTIFICATE|UNKNOWN_CA|ACCESS_DENIED)$/

const byCertificate: Describe = ({ code, message }, { hasCa, hasCertificate }) => {
  if (typeof code !== 'string') return null
  const said = withoutPrefix(message)
  if (untrusted.test(code))
    return refusal(
      'certificate',
      `the brokers' certificate is not trusted (${said.split(';')[0]}): ${
        hasCa
          ? 'KAFKA_SSL_CA_FILE does not hold the authority that signed it'
          : 'set KAFKA_SSL_CA_FILE to a file with the authority that signed it'
      }`,
    )
  if (code === 'CERT_HAS_EXPIRED' || code === 'CERT_NOT_YET_VALID')
    return refusal(
      'certificate',
      `the brokers' certificate is not valid now (${said}): renew it, or check this clock`,
    )
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return refusal(
      'certificate',
      `the brokers' certificate is for other names (${said}): give one of its names in KAFKA_BROKERS, and in the brokers' advertised.listeners`,
    )
  const alert = clientAlert.exec(code)?.[1]
  if (alert === undefined) return null
  return refusal(
    'certificate',
    hasCertificate
      ? `the brokers refuse the client certificate (${alert.toLowerCase().replaceAll('_', ' ')}): check KAFKA_SSL_CERT_FILE, and the brokers' ssl.truststore`
      : 'the brokers ask for a client certificate: set KAFKA_SSL_CERT_FILE and KAFKA_SSL_KEY_FILE',
  )
}

/** kafkajs calls whatever ends a login a failed login, a broker that stops included. */
const notTheLogin =
  /failed: (Closed connection|Not connected|Connection |Request |Failed to connect|Broker not)/

const bySasl: Describe = ({ name, type, message }, { principal, mechanism }) => {
  if (type === 'UNSUPPORTED_SASL_MECHANISM' || /mechanism is not supported by the server/.test(message))
    return refusal(
      'listener',
      `the brokers do not take SASL ${mechanism}: check KAFKA_SASL_MECHANISM, and the port in KAFKA_BROKERS`,
    )
  if (type === 'ILLEGAL_SASL_STATE')
    return refusal(
      'listener',
      'the brokers take no SASL login at this port: check KAFKA_BROKERS, or unset KAFKA_SASL_MECHANISM',
    )
  if (type !== 'SASL_AUTHENTICATION_FAILED' && name !== 'KafkaJSSASLAuthenticationError') return null
  if (notTheLogin.test(message)) return { kind: 'closed', message, isRefusal: false }
  return refusal(
    'login',
    `Kafka refuses the login of user ${userOf(principal)} (SASL ${mechanism}): check KAFKA_SASL_USERNAME, KAFKA_SASL_PASSWORD and KAFKA_SASL_MECHANISM`,
  )
}

const resourceOf: Record<string | number, 'topic' | 'group' | 'cluster'> = {
  TOPIC_AUTHORIZATION_FAILED: 'topic',
  GROUP_AUTHORIZATION_FAILED: 'group',
  CLUSTER_AUTHORIZATION_FAILED: 'cluster',
  29: 'topic',
  30: 'group',
  31: 'cluster',
}

const deniedResource = ({ type, code }: BrokerError) =>
  resourceOf[type ?? ''] ?? (typeof code === 'number' ? resourceOf[code] : undefined)

const isDenied = (error: BrokerError): boolean => deniedResource(error) !== undefined

const byPermission: Describe = (error, login, asked) => {
  const resource = deniedResource(error)
  if (resource === undefined) return null
  const { topic } = error
  const its = asked.filter((one) => one.resource === resource && (topic === undefined || one.name === topic))
  if (its.length === 1) return refusal('permission', deniedMessage(login, its))
  const names = topic === undefined ? [...new Set(its.map(({ name }) => name))] : [topic]
  const what = names.length === 0 ? `a ${resource}` : `${resource} ${names.join(' or ')}`
  return refusal('permission', `${capitalUserOf(login)} lacks a permission on ${what}: ${grant(login)}`)
}

const byListener: Describe = ({ code }) =>
  code === 'ERR_SSL_WRONG_VERSION_NUMBER' || code === 'ERR_SSL_PACKET_LENGTH_TOO_LONG'
    ? refusal('listener', noTls)
    : null

/** Of a port that does not speak TLS. */
export const noTls =
  'the brokers do not speak TLS at this port: check the port in KAFKA_BROKERS, or KAFKA_SSL'

/** A connection that was ended by the other side, or a group whose coordinator no broker names: both hide refusals. */
const byClosing: Describe = ({ name, code, message }) =>
  name === 'KafkaJSConnectionClosedError' ||
  name === 'KafkaJSGroupCoordinatorNotFound' ||
  code === 'ECONNRESET' ||
  /before secure TLS connection/.test(message)
    ? { kind: 'closed', message, isRefusal: false }
    : null

/** Everything that a user lacks, in one line: what may be done with which topics and groups. */
export function deniedMessage(login: KafkaLogin, missing: readonly Permission[]): string {
  const byName = Map.groupBy(
    missing,
    ({ resource, name, isPrefix }) => `${resource} ${name}${isPrefix ? '…' : ''}`,
  )
  const byOperations = Map.groupBy(
    byName,
    ([, its]) => `${its.map(({ operation }) => operation).join(', ')} ${its[0]!.resource}`,
  )
  const parts = [...byOperations].map(
    ([doing, named]) =>
      `${doing}${named.length > 1 ? 's' : ''} ${named.map(([name]) => name.replace(/^\w+ /, '')).join(', ')}`,
  )
  return `${capitalUserOf(login)} may not ${parts.join('; ')}: ${grant(login)}`
}

const userOf = (principal: string | null): string => principal?.replace(/^User:/, '') ?? 'of the token'

const capitalUserOf = ({ principal }: KafkaLogin): string =>
  principal === null ? 'The user of the token' : `User ${userOf(principal)}`

const grant = ({ principal }: KafkaLogin): string =>
  `grant it with the lines of \`postrider setup --print-acls ${principal === null ? 'User:NAME' : quoted(principal)}\``

const quoted = (principal: string): string => (/^[\w:.@-]+$/.test(principal) ? principal : `'${principal}'`)

/** kafkajs says first that it was a connection's error. */
const withoutPrefix = (message: string): string =>
  message.replace(/^Connection error: /, '').replace(/\s*\n\s*/g, ' ')

/** Errors of kafkajs, and of brokers that are away, are the infrastructure's; anything else is a bug of ours. */
export const mayPass = (error: unknown): boolean =>
  error instanceof PostriderError
    ? error.canRetry
    : error instanceof Error && error.name.startsWith('KafkaJS')
