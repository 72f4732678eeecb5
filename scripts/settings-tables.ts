import { variableNames, variables, type VariableName } from '../src/config/variables.ts'

/** The sections of docs/configuration.md, in its order; every variable stands in one of them. */
export const settingsSections: readonly (readonly [title: string, names: readonly VariableName[]])[] = [
  [
    'Kafka and the schema registry',
    [
      'KAFKA_BROKERS',
      'SCHEMA_REGISTRY_URL',
      'SCHEMA_REGISTRY_USERNAME',
      'SCHEMA_REGISTRY_PASSWORD',
      'TOPIC_PREFIX',
      'GROUP_ID',
      'SESSION_TIMEOUT',
    ],
  ],
  ['Keys and tokens', ['SECRETS_KEY', 'ADMIN_TOKEN']],
  [
    'Addresses and ports',
    [
      'COLLECTOR_HOST',
      'COLLECTOR_PORT',
      'COLLECTOR_URL',
      'COLLECTOR_BROWSER_SDK',
      'CONSOLE_HOST',
      'CONSOLE_PORT',
      'CONSOLE_URL',
      'METRICS_HOST',
      'METRICS_PORT',
      'METRICS_DESTINATIONS',
      'TRUSTED_PROXIES',
    ],
  ],
  ['Collector', ['SOURCE_MAX_RATE']],
  ['Console', ['AUDIT_INTERVAL']],
  [
    'Login to the console by the company’s own',
    [
      'CONSOLE_OIDC_ISSUER',
      'CONSOLE_OIDC_CLIENT_ID',
      'CONSOLE_OIDC_CLIENT_SECRET',
      'CONSOLE_OIDC_SCOPE',
      'CONSOLE_OIDC_ROLES_CLAIM',
      'CONSOLE_OIDC_ROLES',
      'CONSOLE_OIDC_SESSION',
    ],
  ],
  ['Mail', ['MAIL_SMTP_URL', 'MAIL_FROM', 'MAIL_TO', 'MAIL_TLS', 'MAIL_CA_FILE']],
  [
    'Delivery',
    [
      'RETRY_TIERS',
      'RETRY_WINDOW',
      'RETRY_BUDGET',
      'WEBHOOK_TIMEOUT',
      'WEBHOOK_CLIENT',
      'WEBHOOK_ALLOWED_NETWORKS',
      'WEBHOOK_CA_FILE',
      'WEBHOOK_PROXY',
      'WEBHOOK_PROXY_CA_FILE',
      'WEBHOOK_PROXY_RESOLVES',
      'WEBHOOK_SOURCE_ADDRESS',
      'WEBHOOK_IP_FAMILY',
      'MAX_IN_FLIGHT',
      'MAX_IN_FLIGHT_PER_ENDPOINT',
      'LEDGER',
    ],
  ],
  [
    'TLS and login at the brokers',
    [
      'KAFKA_SSL',
      'KAFKA_SSL_CA_FILE',
      'KAFKA_SSL_CERT_FILE',
      'KAFKA_SSL_KEY_FILE',
      'KAFKA_SASL_MECHANISM',
      'KAFKA_SASL_USERNAME',
      'KAFKA_SASL_PASSWORD',
      'KAFKA_SASL_OAUTH_TOKEN_URL',
      'KAFKA_SASL_OAUTH_CLIENT_ID',
      'KAFKA_SASL_OAUTH_CLIENT_SECRET',
      'KAFKA_SASL_OAUTH_SCOPE',
    ],
  ],
  [
    'Topics that `setup` creates',
    [
      'REPLICATION_FACTOR',
      'PARTITIONS_CALLS',
      'PARTITIONS_RETRY',
      'PARTITIONS_DEAD_LETTERS',
      'PARTITIONS_DELIVERIES',
      'PARTITIONS_MEMBERSHIPS',
    ],
  ],
  ['Local files and logs', ['STORE_PATH', 'MESSAGE_INDEX_MB', 'LOG_LEVEL']],
]

const cell = (text: string): string => text.replaceAll('|', '\\|')

/** Every environment variable as a Markdown table. */
function settingsTable(): string {
  const rows = variableNames.map((name) => {
    const { default: preset, takes, meaning, secret } = variables[name]
    const names = secret ? `\`${name}\` or \`${name}_FILE\`` : `\`${name}\``
    return `| ${names} | ${preset ? `\`${cell(preset)}\`` : ''} | ${cell(takes)} | ${cell(meaning)} |`
  })
  return ['| variable | default | takes | meaning |', '|---|---|---|---|', ...rows].join('\n')
}

/** The variables as docs/configuration.md has them: a section and a table each. A test compares the two. */
export function settingsTables(): string {
  // Links in `meaning` are relative to the repository's root, the page lies in docs/.
  const [head, rule, ...rows] = settingsTable().replaceAll('](docs/', '](').split('\n')
  const rowOf = (name: VariableName) => rows[variableNames.indexOf(name)]!
  return settingsSections
    .map(([title, names]) => [`## ${title}`, '', head, rule, ...names.map(rowOf)].join('\n'))
    .join('\n\n')
}
