import { companyLoginOf } from './company-login.ts'
import { kafkaLoginOf, kafkaSecurityWarnings, kafkaTlsOf } from './kafka-security.ts'
import { mailOf } from './mail.ts'
import { readEnvironment } from './read-environment.ts'
import type { Environment } from './read-environment.ts'
import type { VariableName } from './variables.ts'

/** Everything that the environment decides, checked once at start. */
export type Config = ReturnType<typeof loadConfig>

/**
 * The environment as one checked object. Throws PostriderError 'usage' with one line for each variable that is
 * wrong. `spell` gives the name by which a line calls a variable, for values that came from a flag.
 */
export function loadConfig(env: Environment, spell: (name: VariableName) => string = (name) => name) {
  const values = readEnvironment(env, spell)
  return {
    kafka: {
      brokers: values.KAFKA_BROKERS,
      ssl: kafkaTlsOf(values),
      sasl: kafkaLoginOf(values),
    },
    registry: {
      url: values.SCHEMA_REGISTRY_URL,
      username: values.SCHEMA_REGISTRY_USERNAME,
      password: values.SCHEMA_REGISTRY_PASSWORD,
    },
    topicPrefix: values.TOPIC_PREFIX,
    groupId: values.GROUP_ID,
    sessionTimeoutMs: values.SESSION_TIMEOUT,
    /** Ascending by delay. */
    retryTiers: values.RETRY_TIERS,
    retryWindowMs: values.RETRY_WINDOW,
    retryBudgetPercent: values.RETRY_BUDGET,
    webhookTimeoutMs: values.WEBHOOK_TIMEOUT,
    webhookClient: values.WEBHOOK_CLIENT,
    ledger: values.LEDGER,
    maxInFlight: values.MAX_IN_FLIGHT,
    maxInFlightPerEndpoint: values.MAX_IN_FLIGHT_PER_ENDPOINT,
    /** CIDRs that webhooks may reach although they are private. */
    allowedNetworks: values.WEBHOOK_ALLOWED_NETWORKS ?? [],
    /** Certificates in PEM form. */
    webhookCa: values.WEBHOOK_CA_FILE?.text ?? null,
    webhookProxyCa: values.WEBHOOK_PROXY_CA_FILE?.text ?? null,
    wayOut: {
      proxy: values.WEBHOOK_PROXY,
      proxyResolves: values.WEBHOOK_PROXY_RESOLVES,
      sourceAddresses: values.WEBHOOK_SOURCE_ADDRESS ?? [],
      ipFamily: ipFamilies[values.WEBHOOK_IP_FAMILY],
    },
    /** Addresses to listen at. */
    collectorHost: values.COLLECTOR_HOST,
    consoleHost: values.CONSOLE_HOST,
    metricsHost: values.METRICS_HOST,
    collectorPort: values.COLLECTOR_PORT,
    /** Without a slash at its end; null where it is not known. */
    collectorUrl: values.COLLECTOR_URL?.replace(/\/+$/, '') ?? null,
    /** Whether the collector serves the SDK for browsers. */
    servesBrowserSdk: values.COLLECTOR_BROWSER_SDK === 'on',
    /** CIDRs of proxies whose X-Forwarded-For is believed. */
    trustedProxies: values.TRUSTED_PROXIES ?? [],
    /** Calls a second of one source at one collector; 0 for no limit. */
    sourceMaxRate: values.SOURCE_MAX_RATE,
    /** In ms; null: the console makes no audit by itself. */
    auditIntervalMs: values.AUDIT_INTERVAL,
    consolePort: values.CONSOLE_PORT,
    /** Without a slash at its end; null where it is not known. */
    consoleUrl: values.CONSOLE_URL?.replace(/\/+$/, '') ?? null,
    /** Null: people log in to the console with tokens only. */
    companyLogin: companyLoginOf(values),
    /** Null: operational events are not mailed. */
    mail: mailOf(values),
    metricsPort: values.METRICS_PORT,
    /** Destinations, and sources, with series of their own. */
    metricsDestinations: values.METRICS_DESTINATIONS,
    adminToken: values.ADMIN_TOKEN,
    /** 32-byte keys, the one that encrypts first; empty when SECRETS_KEY is not set. */
    secretsKeys: values.SECRETS_KEY ?? [],
    /** For `setup` only. */
    partitions: {
      calls: values.PARTITIONS_CALLS,
      retry: values.PARTITIONS_RETRY,
      deadLetters: values.PARTITIONS_DEAD_LETTERS,
      deliveries: values.PARTITIONS_DELIVERIES,
      memberships: values.PARTITIONS_MEMBERSHIPS,
    },
    /** A folder. */
    storePath: values.STORE_PATH,
    messageIndexBytes: values.MESSAGE_INDEX_MB * 1_000_000,
    /** For `setup` only; -1 leaves it to the brokers. */
    replicationFactor: values.REPLICATION_FACTOR ?? -1,
    logLevel: values.LOG_LEVEL,
  }
}

const ipFamilies = { any: null, 4: 4, 6: 6 } as const

/** Logins that reveal their secret to listeners on the network: a line each, for the log. */
export function clearTextWarnings({
  kafka,
  registry,
  wayOut: { proxy },
  mail,
}: Pick<Config, 'kafka' | 'registry' | 'wayOut' | 'mail'>): string[] {
  const warnings = kafkaSecurityWarnings(kafka)
  if (registry.password !== null && registry.url.startsWith('http:'))
    warnings.push(
      'the password goes to the schema registry in clear text: use an https URL for SCHEMA_REGISTRY_URL',
    )
  if (proxy !== null && proxy.login !== null && proxy.url.startsWith('http:'))
    warnings.push('the password goes to the proxy in clear text: use an https URL for WEBHOOK_PROXY')
  if (mail?.server.login && !mail.needsTls && !mail.server.isTls)
    warnings.push('the password goes to the mail server in clear text: use MAIL_TLS=required')
  return warnings
}
