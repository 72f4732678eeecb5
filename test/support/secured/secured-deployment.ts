// A deployment on a secured Kafka: each part logs in as a user of its own, in its own way, with nothing but the
// permissions that `setup --print-acls` prints for it. Everything runs in processes, as users run it.
import { execFile, spawn } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import kafkajs from 'kafkajs'
import type { CommandResult } from '../deployment/program-here.ts'
import { until } from '../until.ts'
import { entryOf, grantsOf, type Grant } from './kafka-acls.ts'
import { registryUrl, uniquePrefix } from '../deployment/rig.ts'
import { securedKafka, type SecuredKafka } from './secured-kafka.ts'
import { passwordOf, securedLogins, type Env, type SecuredLogins } from './secured-logins.ts'
import { bareEnv } from '../deployment/bare-env.ts'

const { Kafka, logLevel } = kafkajs
const main = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

export interface RunningPart {
  /** All that it wrote so far. */
  output(): string
  /** What /readyz says; null while it does not answer. */
  readiness(): Promise<{ ready: boolean; checks: Record<string, string> } | null>
  ready(): Promise<void>
  /** What its line says that names the port: `collecting`, `admin API`. */
  url(what: string): string
  /** SIGTERM; resolves once it is gone. */
  stop(): Promise<CommandResult>
  ended: Promise<CommandResult>
}

export interface SecuredDeployment {
  kafka: SecuredKafka
  /** A record of nothing but this text, as a super user. */
  produce(topic: string, value: string): Promise<void>
  /** With the deployment's prefix. */
  topic(name: string): string
  /** Without any login. */
  base: Env
  ways: SecuredLogins
  /** `setup` by PLAIN, `collector` by SCRAM-SHA-256, `forwarder` by a token, `console` by a certificate. */
  logins: Record<'setup' | 'collector' | 'forwarder' | 'console', Env>
  /** Runs a command to its end. */
  run(env: Env, ...args: string[]): Promise<CommandResult>
  start(env: Env, ...args: string[]): RunningPart
  /** Runs what is printed in a shell, and grants it. Gives what was granted. */
  grant(printed: string): Promise<Grant[]>
  allow(grants: readonly Grant[]): Promise<void>
  deny(grants: readonly Grant[]): Promise<void>
  /** What every process wrote, by now. */
  everything(): string
}

export async function securedDeployment(t: TestContext): Promise<SecuredDeployment> {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  const endings: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const end of endings.reverse()) await end()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  const names = ['setup', 'collector', 'nobody']
  const kafka = await securedKafka(t, Object.fromEntries(names.map((name) => [name, passwordOf(name)])))
  const ways = await securedLogins(t, kafka)
  const openKafka = new Kafka({ brokers: [kafka.listeners.open], logLevel: logLevel.NOTHING })
  const admin = openKafka.admin()
  await admin.connect()
  endings.push(() => admin.disconnect())

  const prefix = uniquePrefix()
  const base: Env = {
    SCHEMA_REGISTRY_URL: registryUrl(),
    // The registry is shared with other tests.
    TOPIC_PREFIX: prefix,
    GROUP_ID: `${prefix}group`,
    RETRY_TIERS: '300ms,600ms',
    SECRETS_KEY: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
    ...Object.fromEntries(
      ['CALLS', 'RETRY', 'DEAD_LETTERS', 'DELIVERIES', 'MEMBERSHIPS'].map((name) => [
        `PARTITIONS_${name}`,
        '1',
      ]),
    ),
    METRICS_PORT: '0',
    COLLECTOR_PORT: '0',
    CONSOLE_PORT: '0',
    ADMIN_TOKEN: 'a-token-that-nobody-guesses-0123456789',
    STORE_PATH: join(folder, 'store'),
  }
  const outputs: string[] = []
  const acls = join(folder, 'kafka-acls.sh')
  const granted = join(folder, 'granted')
  // Stands for Kafka's own, which is not among the jars of a broker: it writes down what it was told, word by word.
  await writeFile(
    acls,
    `#!/bin/sh\nfor word in "$@"; do printf '%s\\n' "$word"; done >> '${granted}'\necho >> '${granted}'\n`,
  )
  await chmod(acls, 0o755)

  const spawned = (env: Env, args: readonly string[]) => {
    const child = spawn(process.execPath, [main, ...args], {
      cwd: folder,
      env: { ...bareEnv, ...base, ...env },
    })
    child.stdin.end()
    endings.push(async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    })
    let [stdout, stderr] = ['', '']
    const at = outputs.push('') - 1
    const keep = (chunk: Buffer) => (outputs[at] += chunk.toString())
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString())).on('data', keep)
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString())).on('data', keep)
    const ended = new Promise<CommandResult>((resolve) =>
      child.on('close', (status) => resolve({ status, stdout, stderr })),
    )
    return { child, ended, output: () => outputs[at]! }
  }

  const start = (env: Env, ...args: string[]): RunningPart => {
    const { child, ended, output } = spawned(env, args)
    const url = (what: string) =>
      `http://127.0.0.1:${new RegExp(`${what} at http://localhost:(\\d+)`).exec(output())?.[1] ?? 0}`
    const readiness: RunningPart['readiness'] = async () => {
      try {
        const response = await fetch(`${url('metrics')}/readyz`, {
          signal: AbortSignal.timeout(2_000),
        })
        return (await response.json()) as { ready: boolean; checks: Record<string, string> }
      } catch {
        return null
      }
    }
    return {
      output,
      url,
      readiness,
      async ready() {
        const isReady = async () => {
          if (child.exitCode !== null) throw new Error(`it ended: ${output()}`)
          return (await readiness())?.ready === true
        }
        await until(isReady, 90_000, `${args.join(' ')} being ready`)
      },
      stop() {
        child.kill('SIGTERM')
        return ended
      },
      ended,
    }
  }

  const allow = async (grants: readonly Grant[]) =>
    void (await admin.createAcls({ acl: grants.map(entryOf) }))
  return {
    kafka,
    ways,
    base,
    logins: {
      setup: ways.byPassword('plain', 'setup'),
      collector: ways.byPassword('scram-sha-256', 'collector'),
      forwarder: ways.byToken('forwarder'),
      console: await ways.byCertificate('console'),
    },
    topic: (name) => prefix + name,
    async produce(topic, value) {
      const producer = openKafka.producer({ createPartitioner: kafkajs.Partitioners.DefaultPartitioner })
      await producer.connect()
      await producer.send({ topic, messages: [{ value }] })
      await producer.disconnect()
    },
    run: (env, ...args) => spawned(env, args).ended,
    start,
    async grant(printed) {
      await rm(granted, { force: true })
      await promisify(execFile)('sh', ['-ec', printed], { env: { PATH: `${folder}:${process.env.PATH}` } })
      const commands = (await readFile(granted, 'utf8')).split('\n\n').filter((command) => command !== '')
      const grants = commands.flatMap((command) => grantsOf(command.split('\n')))
      await allow(grants)
      return grants
    },
    allow,
    async deny(grants) {
      await admin.deleteAcls({ filters: grants.map(entryOf) })
    },
    everything: () => outputs.join('\n'),
  }
}
