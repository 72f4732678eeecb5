// A Kafka of one node with TLS, logins and permissions (StandardAuthorizer), for the tests of secured clusters.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { startLocalKafka, type LocalKafka } from '../../../src/local/kafka.ts'
import { ensureLocalParts } from '../../../src/local/parts.ts'
import { freePort } from '../../../src/local/ports.ts'
import { createAuthority, type TestAuthority } from './certificates.ts'

/** Each listener is a way to connect; values are `host:port`. */
export interface SecuredListeners {
  /** Without TLS and login, for the test itself: its user, ANONYMOUS, is a super user. */
  open: string
  /** TLS with SCRAM-SHA-256, SCRAM-SHA-512 and PLAIN. */
  passwords: string
  /** TLS that asks for a client's certificate. */
  certificates: string
  /** TLS with OAUTHBEARER; a login holds for 11 s. */
  tokens: string
}

export interface SecuredKafka {
  listeners: SecuredListeners
  authority: TestAuthority
  /** What the broker allowed or denied so far, oldest first. */
  decisions(): Promise<Decision[]>
}

/** What the broker's authorizer logs of one resource that a request is about. */
export interface Decision {
  user: string
  isAllowed: boolean
  /** READ, WRITE, … */
  operation: string
  /** TOPIC, GROUP, CLUSTER. */
  resource: string
  name: string
  request: string
}

const oauth = 'org.apache.kafka.common.security.oauthbearer'

/**
 * Starts it (3-5 s); it is gone after the test.
 * @param users by name, the password of each, with which it may log in by SCRAM (both kinds) and PLAIN
 */
export async function securedKafka(t: TestContext, users: Record<string, string>): Promise<SecuredKafka> {
  const dataDir = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  let kafka: LocalKafka | null = null
  // One step, for `after` runs what was registered first first: the broker must be gone before its folder.
  t.after(async () => {
    await kafka?.kill()
    await rm(dataDir, { recursive: true, force: true, maxRetries: 5 })
  })
  const authority = await createAuthority(t)
  const server = await authority.issue()
  const keystore = join(dataDir, 'server.pem')
  await writeFile(keystore, server.key + server.cert)
  const ports: number[] = []
  while (ports.length < 5) ports.push(await freePort(ports))
  const [open, passwords, certificates, tokens, controller] = ports.map((port) => `127.0.0.1:${port}`) as [
    string,
    string,
    string,
    string,
    string,
  ]
  const listeners = `PLAINTEXT://${open},PASSWORDS://${passwords},CERTIFICATES://${certificates},TOKENS://${tokens}`
  const scram = ['scram-sha-256', 'scram-sha-512']
  const plainUsers = Object.entries(users).map(([name, password]) => `user_${name}="${password}"`)
  const parts = await ensureLocalParts()
  // The broker's log then names each decision; system properties that the start sets do not say so.
  await writeFile(
    join(dataDir, 'simplelogger.properties'),
    'org.slf4j.simpleLogger.log.kafka.authorizer.logger=debug\n',
  )
  kafka = await startLocalKafka({
    parts: { ...parts, kafkaClassPath: `${dataDir}:${parts.kafkaClassPath}` },
    dataDir,
    port: ports[0]!,
    heapMb: 384,
    formatArgs: Object.entries(users).flatMap(([name, password]) =>
      scram.flatMap((kind) => ['--add-scram', `${kind.toUpperCase()}=[name=${name},password=${password}]`]),
    ),
    properties: {
      'controller.quorum.voters': `1@${controller}`,
      listeners: `${listeners},CONTROLLER://${controller}`,
      'advertised.listeners': listeners,
      'listener.security.protocol.map':
        'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PASSWORDS:SASL_SSL,CERTIFICATES:SSL,TOKENS:SASL_SSL',
      'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
      'super.users': 'User:ANONYMOUS',
      'ssl.keystore.type': 'PEM',
      'ssl.keystore.location': keystore,
      'ssl.truststore.type': 'PEM',
      'ssl.truststore.location': authority.caFile,
      'listener.name.certificates.ssl.client.auth': 'required',
      'listener.name.passwords.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-256,SCRAM-SHA-512',
      'listener.name.passwords.plain.sasl.jaas.config': `org.apache.kafka.common.security.plain.PlainLoginModule required ${plainUsers.join(' ')};`,
      ...Object.fromEntries(
        scram.map((kind) => [
          `listener.name.passwords.${kind}.sasl.jaas.config`,
          'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        ]),
      ),
      'listener.name.tokens.sasl.enabled.mechanisms': 'OAUTHBEARER',
      'listener.name.tokens.oauthbearer.sasl.jaas.config': `${oauth}.OAuthBearerLoginModule required;`,
      'listener.name.tokens.oauthbearer.sasl.server.callback.handler.class': `${oauth}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler`,
      'listener.name.tokens.oauthbearer.connections.max.reauth.ms': 11_000,
    },
  })
  const { logFile } = kafka
  return {
    listeners: { open, passwords, certificates, tokens },
    authority,
    async decisions() {
      const log = await readFile(logFile, 'utf8')
      return [...log.matchAll(decision)].map(([, user, verdict, operation, resource, name, request]) => ({
        user: user!,
        isAllowed: verdict === 'Allowed',
        operation: operation!,
        resource: resource!,
        name: name!,
        request: request!,
      }))
    },
  }
}

const decision =
  /Principal = User:(.*?) is (Allowed|Denied) operation = (\w+) from host = \S+ on resource = (\w+):LITERAL:(.*?) for request = (\w+)/g
