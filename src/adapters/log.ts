import pino from 'pino'
import type { DestinationStream, Logger } from 'pino'
import type { Config } from '../config/config.ts'

export type { Logger } from 'pino'

/** Fields that may hold a secret wherever they turn up in a log line. */
const secretFields = [
  'password',
  'secret',
  'sharedSecret',
  'earlierSecret',
  'addSecret',
  'secretsKeys',
  'adminToken',
  'writeKey',
  'signature',
  'authorization',
  'headers',
  'sasl',
  'clientSecret',
  'clientCert',
  'clientKey',
  'oauthClientSecret',
  'templateSecrets',
]

/** Of lines that could not be written and are tried again with the next one, in bytes. */
const maxUnwritten = 4 * 1_024 * 1_024

/**
 * JSON lines with the level as a word and the time in UTC. Callers should never log a secret; as a
 * safety net, fields that are named like one are left out, and the configured secrets themselves are struck
 * out of every line.
 */
export function createLog(options: {
  level: Config['logLevel']
  /** The process's own, or another stream. Commands whose output is on stdout log on stderr. */
  to: 'stdout' | 'stderr' | DestinationStream
  /** Values that must never be seen. */
  secrets?: readonly string[]
}): Logger {
  // Short ones would strike out half of every line, and are no secrets.
  const secrets = (options.secrets ?? [])
    .filter((secret) => secret.length >= 6)
    .map((secret) => JSON.stringify(secret).slice(1, -1))
  // Synchronous, so that the line that says why the process ends is written before it does. Where a disk is full lines are
  // lost, and the work goes on: an error that nobody listens to would be thrown by whatever logs.
  const own = (dest: 1 | 2) =>
    pino.destination({ dest, sync: true, maxLength: maxUnwritten }).on('error', () => {})
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: secretFields.flatMap((field) => [field, `*.${field}`]), censor: '…' },
      hooks: {
        streamWrite: (line) => secrets.reduce((text, secret) => text.replaceAll(secret, '…'), line),
      },
    },
    options.to === 'stdout' ? own(1) : options.to === 'stderr' ? own(2) : options.to,
  )
}

/** The secrets of a configuration, as they could turn up in a line. */
export function secretsOf(config: Config): string[] {
  const { kafka, registry, adminToken, secretsKeys, mail, companyLogin } = config
  const login = config.wayOut.proxy?.login ?? null
  return [
    kafka.sasl?.mechanism === 'oauthbearer' ? kafka.sasl.clientSecret : kafka.sasl?.password,
    registry.password,
    mail?.server.login?.password,
    companyLogin?.clientSecret,
    ...(login === null ? [] : [login.slice(login.indexOf(':') + 1), Buffer.from(login).toString('base64')]),
    adminToken,
    ...secretsKeys.flatMap((key) => [
      Buffer.from(key).toString('hex'),
      Buffer.from(key).toString('base64'),
      Buffer.from(key).toString('base64url'),
    ]),
  ].filter((secret) => typeof secret === 'string')
}
