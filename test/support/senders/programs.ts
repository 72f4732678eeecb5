// Programs on servers and JVMs that send calls: each has an SDK of its registry, and is in a folder of test/senders.
import { execFile } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import { needed, type OpsTool } from '../ops/tools.ts'
import { watch, type Watched } from './watched.ts'

export interface Sender {
  name: string
  sdk: string
  /** Its calls, by type. */
  types: readonly string[]
  /** What it adds of its own, by type. */
  adds?: Record<string, object>
  /** Where it sends unless it is told another address. */
  vendor: string
  /** What it does with calls that are not accepted at first. */
  refused: 'sends again' | 'gives up'
  /** It goes on sending what was not accepted for longer than a minute; 'at times': as the random part of its waits has it. */
  isPatient: boolean | 'at times'
  /** How many of its calls may be lost before it sends, as docs/senders.md says. */
  mayLose: 0 | 1
  /** It speaks TLS only, and ends no sooner than its input. */
  isForApps: boolean
  /** Of its folder: what holds the lines that docs/senders.md shows, and what pins its version, as text before the version. */
  main: string
  pin: readonly [file: string, text: string]
}

const all = ['identify', 'track', 'page', 'screen', 'group', 'alias']
const onServers = {
  types: all,
  vendor: 'https://api.segment.io',
  refused: 'sends again',
  isPatient: true,
  mayLose: 0,
  isForApps: false,
} as const
/** The one that takes longest is first. */
export const senders: readonly Sender[] = [
  {
    name: 'kotlin',
    sdk: 'analytics-kotlin',
    ...onServers,
    types: all.filter((type) => type !== 'page'),
    adds: { screen: { category: '' } },
    vendor: 'cdn-settings.segment.com',
    mayLose: 1,
    isForApps: true,
    main: 'Main.kt',
    pin: ['pom.xml', '<artifactId>core</artifactId>\n      <version>'],
  },
  {
    name: 'go',
    sdk: 'analytics-go',
    ...onServers,
    isPatient: false,
    main: 'main.go',
    pin: ['go.mod', 'analytics-go/v3 v'],
  },
  {
    name: 'python',
    sdk: 'segment-analytics-python',
    ...onServers,
    main: 'main.py',
    pin: ['requirements.txt', 'segment-analytics-python=='],
  },
  {
    name: 'java',
    sdk: 'analytics-java',
    ...onServers,
    isPatient: 'at times',
    main: 'Main.java',
    pin: ['pom.xml', '<artifactId>analytics</artifactId>\n      <version>'],
  },
  {
    name: 'rust',
    sdk: 'segment for Rust',
    ...onServers,
    refused: 'gives up',
    isPatient: false,
    main: 'src/main.rs',
    pin: ['Cargo.toml', 'segment = "='],
  },
]

export const toolsOf = ({ name, isForApps }: Sender): OpsTool[] => [
  'strace',
  `sender-${name}`,
  ...(isForApps || name === 'java' ? (['java'] as const) : []),
]

export async function started(
  t: TestContext,
  sender: Sender,
  env: Record<string, string>,
  isCutOff = false,
): Promise<Watched> {
  const { path } = needed(...toolsOf(sender))
  const program = await watch(t, {
    strace: path('strace'),
    program: path(`sender-${sender.name}`),
    env,
    isCutOff,
  })
  // Once it has ended: these run in the order in which they are given, and it writes there until then.
  t.after(async () => {
    if (!sender.isForApps) return
    await rm(`/tmp/analytics-kotlin/${env.WRITE_KEY}`, { recursive: true, force: true })
    // Unless another one keeps something in it.
    await rmdir('/tmp/analytics-kotlin').catch(() => {})
  })
  return program
}

/** What makes a JVM trust this authority, and no other. */
export async function trusting(caFile: string): Promise<Record<string, string>> {
  const store = `${caFile}.p12`
  const keytool = join(dirname(realpathSync(needed('java').path('java'))), 'keytool')
  const what = ['-importcert', '-noprompt', '-alias', 'test', '-file', caFile]
  await promisify(execFile)(keytool, [...what, '-keystore', store, '-storepass', 'trusted'])
  return {
    JDK_JAVA_OPTIONS: `-Djavax.net.ssl.trustStore=${store} -Djavax.net.ssl.trustStorePassword=trusted`,
  }
}
