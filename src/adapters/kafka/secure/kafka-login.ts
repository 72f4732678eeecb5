import { X509Certificate } from 'node:crypto'
import { createSecureContext, type ConnectionOptions } from 'node:tls'
import type { Kafka, Mechanism, SASLOptions } from 'kafkajs'
import type { Config } from '../../../config/config.ts'
import type { KafkaOAuth, KafkaPassword, KafkaTls } from '../../../config/kafka-security.ts'
import { oauthBearer } from './oauth-token.ts'

/** How a client logs in to the brokers and reaches them, for messages about it. Holds no secret. */
export interface KafkaLogin {
  /** `host:port` of the settings. */
  brokers: readonly string[]
  /** As `kafka-acls.sh` takes it; null where only the brokers know it. By OAUTHBEARER it is known with the first token. */
  principal: string | null
  /** As Kafka spells it; null without SASL. */
  mechanism: string | null
  hasTls: boolean
  /** Roots of its own to trust. */
  hasCa: boolean
  hasCertificate: boolean
}

const logins = new WeakMap<Kafka, KafkaLogin>()

export const noteLogin = (kafka: Kafka, login: KafkaLogin): void => void logins.set(kafka, login)

export const loginBehind = (kafka: Kafka): KafkaLogin => logins.get(kafka) ?? unknownLogin

/** Of a client that an application made itself nothing is known. */
const unknownLogin: KafkaLogin = {
  brokers: [],
  principal: null,
  mechanism: null,
  hasTls: false,
  hasCa: false,
  hasCertificate: false,
}

export function loginOf({ brokers, ssl, sasl }: Config['kafka']): KafkaLogin {
  const certificate = ssl ? ssl.cert : null
  return {
    brokers,
    principal: principalOf(sasl, certificate),
    mechanism: sasl?.mechanism.toUpperCase() ?? null,
    hasTls: ssl !== false,
    hasCa: ssl !== false && ssl.ca !== null,
    hasCertificate: certificate !== null,
  }
}

function principalOf(sasl: Config['kafka']['sasl'], certificate: { text: string } | null): string | null {
  if (sasl?.mechanism === 'oauthbearer') return null
  if (sasl !== null) return `User:${sasl.username}`
  return certificate === null ? 'User:ANONYMOUS' : `User:${subjectOf(certificate.text)}`
}

/** As brokers name a client certificate's owner unless ssl.principal.mapping.rules says otherwise: the last part first. */
const subjectOf = (pem: string): string => new X509Certificate(pem).subject.split('\n').reverse().join(',')

/** kafkajs keeps an authenticator of its own in the object. */
export function saslOptions(sasl: KafkaPassword | KafkaOAuth, login: KafkaLogin): SASLOptions | Mechanism {
  if (sasl.mechanism !== 'oauthbearer') return { ...sasl } as SASLOptions
  return oauthBearer(sasl, (subject) => (login.principal = subject && `User:${subject}`))
}

/**
 * kafkajs's `ssl`. The roots of the CA file are the only ones that are trusted, as with other Kafka clients. The files'
 * contents are parsed once: tls.connect would do it for each connection.
 */
export function tlsOptions(tls: false | KafkaTls): boolean | ConnectionOptions {
  if (!tls) return false
  const { ca, cert, key } = tls
  if (!ca && !cert) return true
  return {
    secureContext: createSecureContext({
      ...(ca && { ca: ca.text }),
      ...(cert && key && { cert: cert.text, key: key.text }),
    }),
  }
}
