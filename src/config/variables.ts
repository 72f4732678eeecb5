// Every environment variable: the one place where its default, what it takes and what it means are written.
import { pemCertificates, pemKey } from './pem.ts'
import {
  brokerList,
  duration,
  flag,
  httpUrl,
  issuerUrl,
  keyList,
  mailAddresses,
  matching,
  networkList,
  oneOf,
  tierList,
  whole,
  proxyUrl,
  roleGrants,
  smtpUrl,
  sourceAddresses,
  host,
  partitions,
  port,
  variable,
} from './variable.ts'

const fourHours = 4 * 3_600_000
const fiveSeconds = 5_000

/** Which cluster, and which deployment on it, a process works with. */
const cluster = {
  KAFKA_BROKERS: variable(brokerList, {
    default: 'localhost:9092',
    takes: 'host:port, several separated by commas',
    meaning: 'Brokers to begin with; the others are learnt from them.',
  }),
  KAFKA_SSL: variable(flag, {
    takes: 'true or false',
    meaning:
      'TLS to the brokers. Unset: true when one of the three files below is given. [Secured clusters](docs/secured-clusters.md) shows each way to log in.',
  }),
  KAFKA_SSL_CA_FILE: variable(pemCertificates, {
    takes: 'the path of a PEM file with certificates',
    meaning: 'The roots to trust at the brokers, in place of Node’s own.',
  }),
  KAFKA_SSL_CERT_FILE: variable(pemCertificates, {
    takes: 'the path of a PEM file with a client certificate, with KAFKA_SSL_KEY_FILE',
    meaning: 'For brokers that ask for a certificate (mutual TLS): the client’s own first, then its chain.',
  }),
  KAFKA_SSL_KEY_FILE: variable(pemKey, {
    takes: 'the path of a PEM file with the certificate’s private key, not encrypted',
    meaning: 'The key of `KAFKA_SSL_CERT_FILE`.',
  }),
  KAFKA_SASL_MECHANISM: variable(oneOf('plain', 'scram-sha-256', 'scram-sha-512', 'oauthbearer'), {
    takes:
      'plain, scram-sha-256 or scram-sha-512, with KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD, or oauthbearer, with KAFKA_SASL_OAUTH_…',
    meaning: 'How to log in to the brokers.',
  }),
  KAFKA_SASL_USERNAME: variable(matching(/^.+$/), {
    takes: 'a name, with KAFKA_SASL_MECHANISM and KAFKA_SASL_PASSWORD',
    meaning: 'The user that logs in to the brokers.',
  }),
  KAFKA_SASL_PASSWORD: variable(matching(/^.+$/), {
    takes: 'a password, with KAFKA_SASL_MECHANISM and KAFKA_SASL_USERNAME',
    meaning: 'Its password.',
    secret: true,
  }),
  KAFKA_SASL_OAUTH_TOKEN_URL: variable(httpUrl, {
    takes: 'an http or https URL without credentials',
    meaning: 'Where `oauthbearer` gets its tokens: the endpoint for client credentials (RFC 6749).',
  }),
  KAFKA_SASL_OAUTH_CLIENT_ID: variable(matching(/^.+$/), {
    takes: 'the id of a client, with KAFKA_SASL_OAUTH_CLIENT_SECRET',
    meaning: 'The client that asks for tokens.',
  }),
  KAFKA_SASL_OAUTH_CLIENT_SECRET: variable(matching(/^.+$/), {
    takes: 'the secret of the client',
    meaning: 'Its secret.',
    secret: true,
  }),
  KAFKA_SASL_OAUTH_SCOPE: variable(matching(/^[\x21\x23-\x5b\x5d-\x7e]+( [\x21\x23-\x5b\x5d-\x7e]+)*$/), {
    takes: 'one or several scopes, separated by a space',
    meaning: 'What tokens are asked for. Unset: what the endpoint gives by itself.',
  }),
  SCHEMA_REGISTRY_URL: variable(httpUrl, {
    default: 'http://localhost:8081',
    takes: 'an http or https URL without credentials',
    meaning:
      'A schema registry that speaks the Confluent API: Confluent’s, or Apicurio at `https://host/apis/ccompat/v7`.',
  }),
  SCHEMA_REGISTRY_USERNAME: variable(matching(/^.+$/), {
    takes: 'a name, with SCHEMA_REGISTRY_PASSWORD',
    meaning: 'Who logs in to the registry (Basic).',
  }),
  SCHEMA_REGISTRY_PASSWORD: variable(matching(/^.+$/), {
    takes: 'a password, with SCHEMA_REGISTRY_USERNAME',
    meaning: 'Its password.',
    secret: true,
  }),
  TOPIC_PREFIX: variable(matching(/^[\w.-]{0,100}$/), {
    default: '',
    takes: 'at most 100 of A-Z a-z 0-9 . _ -',
    meaning: 'Put before every topic’s name. With `GROUP_ID` it keeps deployments on one Kafka apart.',
  }),
  GROUP_ID: variable(matching(/^[\w.-]{1,200}$/), {
    default: 'postrider',
    takes: '1 to 200 of A-Z a-z 0-9 . _ -',
    meaning: 'The consumer group for calls; `<GROUP_ID>.retries` is the one for the retry tiers.',
  }),
}

export const variables = {
  ...cluster,
  SESSION_TIMEOUT: variable(duration(1_000, 5 * 60_000), {
    default: '10s',
    takes: 'a duration (10s 1m) from 1s to 5m, within what the brokers allow (group.min.session.timeout.ms)',
    meaning:
      'How long a forwarder that is silent keeps its partitions. One that was frozen for two thirds of it sends nothing more.',
  }),
  RETRY_TIERS: variable(tierList(fourHours, 16), {
    default: '10s,30s,1m,5m,15m,30m,1h,2h',
    takes: '1 to 16 durations in ascending order, each shorter than RETRY_WINDOW, separated by commas',
    meaning:
      'How long to wait before each further attempt; one topic each. Run `setup` after a change. Unset: those of the default that are shorter than RETRY_WINDOW.',
  }),
  RETRY_WINDOW: variable(duration(1, fourHours), {
    default: '4h',
    takes: 'a duration (250ms 5s 1m 4h) of at most 4h',
    meaning: 'No attempt later than this after a delivery’s first.',
  }),
  RETRY_BUDGET: variable(whole(1, 1_000), {
    default: '100',
    takes: 'a whole number of percent, from 1 to 1000',
    meaning:
      'How many retries may fail at one URL, in percent of its first attempts of the last ten minutes. Ten a second, of all forwarders together, are free. Beyond that, retries wait in the tiers.',
  }),
  WEBHOOK_TIMEOUT: variable(duration(10, fiveSeconds), {
    default: '5s',
    takes: 'a duration (250ms 5s) from 10ms to 5s',
    meaning: 'An attempt that has no complete response by then has timed out.',
  }),
  WEBHOOK_CLIENT: variable(oneOf('direct', 'undici'), {
    default: 'direct',
    takes: 'direct or undici',
    meaning:
      'Who writes requests and reads responses: Postrider’s own client, or undici’s. All else is the same (docs/http-client.md).',
  }),
  LEDGER: variable(oneOf('failures', 'all'), {
    default: 'failures',
    takes: 'failures or all',
    meaning:
      'What `webhooks.deliveries` records: all but plain first-time deliveries, or everything, [requests and answers](docs/ledger.md) included.',
  }),
  MAX_IN_FLIGHT: variable(whole(1, 100_000), {
    default: '4096',
    takes: 'a whole number from 1 to 100000',
    meaning:
      'Upper bound of the requests that one process has in flight. One whose CPU is busy sends fewer at once.',
  }),
  MAX_IN_FLIGHT_PER_ENDPOINT: variable(whole(1, 100_000), {
    default: '2048',
    takes: 'a whole number from 1 to 100000',
    meaning:
      'Upper bound of the requests that one process has in flight to one URL of a destination. The limit of the moment adapts to the endpoint.',
  }),
  WEBHOOK_ALLOWED_NETWORKS: variable(networkList, {
    takes: 'CIDRs (10.1.0.0/16,fd00::/8), separated by commas',
    meaning:
      'Private networks that webhooks may reach. All other private and loopback addresses are refused.',
  }),
  WEBHOOK_CA_FILE: variable(pemCertificates, {
    takes: 'the path of a PEM file with certificates',
    meaning: 'Roots to trust at webhooks, beside Node’s own.',
  }),
  WEBHOOK_PROXY: variable(proxyUrl, {
    takes: 'the http or https URL of a forward proxy, with user and password where it asks for them',
    meaning:
      'All webhooks go through it, as [connections that it makes](docs/way-out.md) (CONNECT). A destination may have a proxy of its own, or none.',
    secret: true,
  }),
  WEBHOOK_PROXY_CA_FILE: variable(pemCertificates, {
    takes: 'the path of a PEM file with certificates',
    meaning: 'Roots to trust at https proxies, beside Node’s own.',
  }),
  WEBHOOK_PROXY_RESOLVES: variable(flag, {
    default: 'false',
    takes: 'true or false',
    meaning:
      'Names of hosts are sent to the proxy as they are: it looks them up, and [it alone](docs/way-out.md#who-looks-names-up) keeps webhooks out of private networks.',
  }),
  WEBHOOK_SOURCE_ADDRESS: variable(sourceAddresses, {
    takes: 'one IPv4 or IPv6 address of this machine, or one of each, separated by a comma',
    meaning:
      'Where webhooks [come from](docs/way-out.md#fixed-addresses), for receivers that allow-list. With one address alone, only addresses of its kind are connected to. Unset: the system chooses.',
  }),
  WEBHOOK_IP_FAMILY: variable(oneOf('any', '4', '6'), {
    default: 'any',
    takes: 'any, 4 or 6',
    meaning: 'Which addresses of a host webhooks are sent to: IPv4, IPv6, or both.',
  }),
  COLLECTOR_HOST: host('::', 'The address at which the collector listens.'),
  COLLECTOR_PORT: port('8080', 'Where the collector listens.'),
  COLLECTOR_URL: variable(httpUrl, {
    takes: 'an http or https URL without credentials',
    meaning:
      'Where senders reach the collectors: for what the [console](docs/console.md) shows to copy, and for the [documents that SDKs ask for](docs/senders.md#what-sdks-ask-for). Without it, port COLLECTOR_PORT of this machine, and the host that a request names.',
  }),
  COLLECTOR_BROWSER_SDK: variable(oneOf('on', 'off'), {
    default: 'on',
    takes: 'on or off',
    meaning: 'Whether the collector serves the [SDK for browsers](docs/senders.md#one-script-tag).',
  }),
  SOURCE_MAX_RATE: variable(whole(0, 100_000_000), {
    default: '5000',
    takes: 'a whole number, or 0 for no limit',
    meaning:
      'Calls a second that one collector takes of one source; beyond them it answers that source 429. All sources share the topic, so one that floods it would delay the deliveries of the others. Calls that are invalid or repeated count for [their sender](docs/http-api.md#sources-do-not-affect-each-other).',
  }),
  AUDIT_INTERVAL: variable(duration(60_000, 24 * 3_600_000), {
    takes: 'a duration (15m 1h 24h) from 1m to 24h',
    meaning:
      'How often each console [audits](docs/audit.md) what is new and shows the verdict as `postrider_audit_passed`. Unset: only when asked.',
  }),
  TRUSTED_PROXIES: variable(networkList, {
    takes: 'CIDRs (10.1.0.0/16,fd00::/8), separated by commas',
    meaning:
      'Where the collector’s own proxies are: what they say in `X-Forwarded-For` is believed, so that `context.ip` is the caller’s. Nobody else’s is.',
  }),
  CONSOLE_HOST: host(
    '127.0.0.1',
    'The address at which the console listens. It speaks plain HTTP, and the token crosses the network with each request.',
  ),
  CONSOLE_URL: variable(httpUrl, {
    takes: 'an http or https URL without credentials',
    meaning: 'Where people reach the console: [operational events](docs/operational-events.md) link to it.',
  }),
  CONSOLE_PORT: port('8090', 'Where the console listens.'),
  CONSOLE_OIDC_ISSUER: variable(issuerUrl, {
    takes: 'the https URL of an OpenID Connect issuer, exactly as it names itself, with CONSOLE_URL',
    meaning:
      'The company’s own login, which people can [log in](docs/company-login.md) to the console with. http is taken for this machine alone.',
  }),
  CONSOLE_OIDC_CLIENT_ID: variable(matching(/^.+$/), {
    takes: 'the id of a client, with CONSOLE_OIDC_ISSUER',
    meaning: 'The client that the issuer knows the console as.',
  }),
  CONSOLE_OIDC_CLIENT_SECRET: variable(matching(/^.+$/), {
    takes: 'the secret of the client, with CONSOLE_OIDC_ISSUER',
    meaning: 'Its secret.',
    secret: true,
  }),
  CONSOLE_OIDC_SCOPE: variable(matching(/^openid( [\x21\x23-\x5b\x5d-\x7e]+)*$/), {
    default: 'openid email',
    takes: '`openid`, and further scopes behind it, separated by a space',
    meaning: 'What the console asks the issuer for. Some issuers need another scope to name groups.',
  }),
  CONSOLE_OIDC_ROLES_CLAIM: variable(matching(/^\S+$/), {
    default: 'groups',
    takes: 'the name of a claim; dots lead into objects (realm_access.roles)',
    meaning: 'The claim whose values decide the role: a text, or a list of texts.',
  }),
  CONSOLE_OIDC_ROLES: variable(roleGrants, {
    takes:
      'value=role, or value=role:id:id* for some sources and destinations, several separated by commas (platform=admin,agency=reader:crm:shop-*)',
    meaning:
      'Which value of the claim gives which [role](docs/admin-api.md#tokens-and-roles). The first one that a person has counts; a person without any is not let in.',
  }),
  CONSOLE_OIDC_SESSION: variable(duration(60_000, 12 * 3_600_000), {
    default: '8h',
    takes: 'a duration (30m 8h) from 1m to 12h',
    meaning: 'How long a login by the issuer lasts. A person who leaves a group keeps the role until then.',
  }),
  MAIL_SMTP_URL: variable(smtpUrl, {
    takes:
      'smtps://user:password@host:port, or smtp:// for a server that begins TLS by STARTTLS; without user and password where it asks for none',
    meaning:
      'The mail server by which a console sends [operational events](docs/operational-events.md#mail). Ports unless given: 465 and 587.',
    secret: true,
  }),
  MAIL_FROM: variable(mailAddresses(1), {
    takes: 'a mail address',
    meaning: 'The sender of these mails.',
  }),
  MAIL_TO: variable(mailAddresses(20), {
    takes: '1 to 20 mail addresses, separated by commas',
    meaning:
      'Who gets operational events by mail, beside [those of the settings](docs/operational-events.md#mail).',
  }),
  MAIL_TLS: variable(oneOf('required', 'none'), {
    default: 'required',
    takes: 'required or none',
    meaning: 'With `none`, smtp:// is spoken in clear text: mails, and the login.',
  }),
  MAIL_CA_FILE: variable(pemCertificates, {
    takes: 'the path of a PEM file with certificates',
    meaning: 'Roots to trust at the mail server, beside Node’s own.',
  }),
  METRICS_HOST: host(
    '::',
    'The address at which `/metrics`, `/healthz` and `/readyz` are. They have no login, and name sources and destinations.',
  ),
  METRICS_PORT: port('9464', 'Where `/metrics`, `/healthz` and `/readyz` are. 0 picks one and prints it.'),
  METRICS_DESTINATIONS: variable(whole(0, 1_000_000), {
    default: '1000',
    takes: 'a whole number, or 0 for none',
    meaning:
      'Destinations with series of their own in `/metrics`, up to 5 KB each, and as many sources. All others are counted together, as `other`.',
  }),
  ADMIN_TOKEN: variable(matching(/^[\x21-\x7e]{32,1024}$/), {
    takes: '32 to 1024 printable ASCII characters without spaces',
    meaning: 'The console’s API takes it as a Bearer token. `openssl rand -hex 32` makes one.',
    secret: true,
  }),
  SECRETS_KEY: variable(keyList, {
    takes: '32 bytes as 64 hex digits or as base64; older keys after a comma',
    meaning:
      'Encrypts shared secrets and header values in the settings log. `openssl rand -hex 32` makes one.',
    secret: true,
  }),
  PARTITIONS_CALLS: partitions('12', '`analytics.calls`'),
  PARTITIONS_RETRY: partitions('6', 'each `webhooks.retry.…`'),
  PARTITIONS_DEAD_LETTERS: partitions('6', '`webhooks.dead-letters`'),
  PARTITIONS_DELIVERIES: partitions('6', '`webhooks.deliveries`'),
  PARTITIONS_MEMBERSHIPS: partitions('6', '`analytics.memberships`'),
  STORE_PATH: variable(matching(/^.+$/), {
    default: '.postrider/store',
    takes: 'the path of a folder, which is made if it is not there',
    meaning:
      'Where views of topics are kept in SQLite files (memberships of audiences and computed traits, an index of messages). It can be deleted: what is needed is built again from Kafka.',
  }),
  MESSAGE_INDEX_MB: variable(whole(1, 1_000_000), {
    default: '2048',
    takes: 'a whole number from 1 to 1000000',
    meaning:
      'What the index of messages under STORE_PATH takes, about. Beyond it, the oldest calls are not in it any more: `why` and `/messages` do not find them.',
  }),
  REPLICATION_FACTOR: variable(whole(1, 100), {
    takes: 'a whole number from 1 to 100',
    meaning: 'Copies of each topic when `setup` creates it. Unset: the brokers’ own default.',
  }),
  LOG_LEVEL: variable(oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'), {
    default: 'info',
    takes: 'trace, debug, info, warn, error, fatal or silent',
    meaning: 'The least severe lines to log. Commands that do one thing and end: `warn` unless set.',
  }),
}

export type VariableName = keyof typeof variables
export const variableNames = Object.keys(variables) as VariableName[]
export const clusterVariables = Object.keys(cluster) as (keyof typeof cluster)[]

export type Values = {
  [N in VariableName]: Exclude<(typeof variables)[N]['value'], undefined>
}
