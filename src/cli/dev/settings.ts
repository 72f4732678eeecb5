import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import type { Config } from '../../config/config.ts'
import type { Environment } from '../../config/read-environment.ts'
import { localRegistryUrl } from '../../local/registry.ts'
import { io } from '../io.ts'
import type { DevState } from './dev.ts'
import type { LocalServerPorts } from './servers.ts'

/** Receivers on this machine may be reached; nothing but `dev` allows that by itself. */
const loopback = '127.0.0.0/8,::1/128'

const fromUser = (name: string): boolean => {
  const { env } = io()
  return Boolean(env[name]?.trim() || env[`${name}_FILE`]?.trim())
}

/** What holds for `dev` where neither a flag nor the environment says otherwise. */
export function devDefaults(state: DevState, ports: LocalServerPorts | null): Environment {
  return {
    ...(ports && {
      KAFKA_BROKERS: ports.kafka.map((port) => `127.0.0.1:${port}`).join(),
      SCHEMA_REGISTRY_URL: localRegistryUrl(ports.registry),
    }),
    ADMIN_TOKEN: state.get('ADMIN_TOKEN') ?? randomBytes(32).toString('hex'),
    SECRETS_KEY: state.get('SECRETS_KEY') ?? state.get('DEV_SECRETS_KEY') ?? randomBytes(32).toString('hex'),
    WEBHOOK_ALLOWED_NETWORKS: loopback,
    LEDGER: 'all',
  }
}

/**
 * Leaves what commands in a second terminal need to find this run. Secrets that the user gave are not written
 * down: a key made in an earlier run is then kept under a name that nothing else reads.
 */
export async function leaveForOthers(state: DevState, config: Config, defaults: Environment): Promise<void> {
  const keyFromUser = fromUser('SECRETS_KEY')
  const key = defaults.SECRETS_KEY!
  await state.set({
    KAFKA_BROKERS: config.kafka.brokers.join(),
    KAFKA_SSL: config.kafka.ssl ? 'true' : null,
    ...pathsOf(config),
    ...loginOf(config),
    SCHEMA_REGISTRY_URL: config.registry.url,
    SCHEMA_REGISTRY_USERNAME: config.registry.username,
    TOPIC_PREFIX: config.topicPrefix,
    GROUP_ID: config.groupId,
    RETRY_TIERS: config.retryTiers.map(({ name }) => name).join(),
    WEBHOOK_ALLOWED_NETWORKS: config.allowedNetworks.join(),
    LEDGER: config.ledger,
    SECRETS_KEY: keyFromUser ? null : key,
    DEV_SECRETS_KEY: keyFromUser ? key : null,
    ADMIN_TOKEN: fromUser('ADMIN_TOKEN') ? null : defaults.ADMIN_TOKEN!,
  })
}

function pathsOf({ kafka: { ssl } }: Config): Record<string, string | null> {
  const pathOf = (name: 'ca' | 'cert' | 'key') => (ssl && ssl[name] ? resolve(ssl[name].path) : null)
  return {
    KAFKA_SSL_CA_FILE: pathOf('ca'),
    KAFKA_SSL_CERT_FILE: pathOf('cert'),
    KAFKA_SSL_KEY_FILE: pathOf('key'),
  }
}

/** All but its secret. */
function loginOf({ kafka: { sasl } }: Config): Record<string, string | null> {
  const oauth = sasl?.mechanism === 'oauthbearer' ? sasl : null
  return {
    KAFKA_SASL_MECHANISM: sasl?.mechanism ?? null,
    KAFKA_SASL_USERNAME: sasl && sasl.mechanism !== 'oauthbearer' ? sasl.username : null,
    KAFKA_SASL_OAUTH_TOKEN_URL: oauth?.tokenUrl ?? null,
    KAFKA_SASL_OAUTH_CLIENT_ID: oauth?.clientId ?? null,
    KAFKA_SASL_OAUTH_SCOPE: oauth?.scope ?? null,
  }
}

/** The variables that a second terminal has to set by itself, since secrets are not written down. */
export function notLeft({ kafka: { sasl }, registry }: Config): string[] {
  return [
    ...(fromUser('SECRETS_KEY') ? ['SECRETS_KEY'] : []),
    ...(sasl
      ? [sasl.mechanism === 'oauthbearer' ? 'KAFKA_SASL_OAUTH_CLIENT_SECRET' : 'KAFKA_SASL_PASSWORD']
      : []),
    ...(registry.username ? ['SCHEMA_REGISTRY_PASSWORD'] : []),
  ]
}
