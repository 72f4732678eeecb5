import { spawn } from 'node:child_process'
import { randomBytes, createHash } from 'node:crypto'
import { existsSync, createReadStream } from 'node:fs'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, join, resolve } from 'node:path'
import { variables } from '../config/variables.ts'
import { PostriderError, messageOf } from '../errors.ts'
import { findJava, findMaven } from './java-server.ts'
import { isAlive } from './state-folder.ts'
import { pipeline } from 'node:stream/promises'
import { pins } from './pins.ts'

/** SHA-512 in base64, by file name. */
export type PinnedFiles = Readonly<Record<string, string>>

const isFetched = (name: string): boolean => /\.(jar|tar\.gz)$/.test(name)

/** Of the jars and archives in a folder, in order of their names. */
export async function digestsOf(folder: string): Promise<PinnedFiles> {
  const names = (await readdir(folder)).filter(isFetched).sort()
  const digests: Record<string, string> = {}
  for (const name of names) {
    const hash = createHash('sha512')
    await pipeline(createReadStream(join(folder, name)), hash)
    digests[name] = hash.digest('base64')
  }
  return digests
}

/**
 * Maven checks a file against what the same server says of it. This checks it against what Postrider was tested with.
 * @param what name and version of what was fetched; a version that is not pinned is not checked
 * @param folder holds the fetched files
 * @throws PostriderError `local` that names the first file which is another one, is missing or is too many
 */
export async function checkPinned(
  what: string,
  folder: string,
  pinned: Readonly<Record<string, PinnedFiles>> = pins,
): Promise<void> {
  const expected = pinned[what]
  if (!expected) return
  const found = await digestsOf(folder)
  const names = [...new Set([...Object.keys(expected), ...Object.keys(found)])].sort()
  const name = names.find((each) => found[each] !== expected[each])
  if (name === undefined) return
  throw new PostriderError(
    'local',
    `${what}: ${faultOf(name, expected[name], found[name])}, so nothing of it is used. ` +
      'See which server it came from (mirrors and proxies in the settings.xml of Maven), ' +
      'remove the file from ~/.m2/repository, and try again',
  )
}

function faultOf(name: string, expected: string | undefined, found: string | undefined): string {
  if (found === undefined) return `Maven did not bring ${name}`
  if (expected === undefined) return `Maven brought ${name}, which is no part of it`
  return `${name} is not the file that Postrider was tested with (its SHA-512 is ${found}, not ${expected})`
}

/** What the local Kafka and registry are made of, ready to be started. */
export interface LocalParts {
  /** The `java` to run them with. */
  java: string
  kafkaClassPath: string
  registryClassPath: string
  /** Flags of the JVM, which name the class archives once there are any (class-archives.ts). */
  kafkaFlags: readonly string[]
  registryFlags: readonly string[]
  archiveFiles: { kafka: string; registry: string }
}

export interface PartsOptions {
  cacheDir?: string
  onProgress?: (text: string) => void
  env?: NodeJS.ProcessEnv
  signal?: AbortSignal
  /** Gets the name and version of what Maven has brought, and its folder; throws where it must not be used (`checkPinned`). */
  check?: (what: string, folder: string) => Promise<void>
}

/** What is started unless POSTRIDER_KAFKA_VERSION names another one of Maven Central. */
export const newestKafka = '4.3.1'
/** The oldest that Postrider is tested with: the first in which KRaft was declared ready for production. */
export const oldestKafka = '3.3.2'
/** The newest registry that runs on Java 17. */
export const registryVersion = '3.0.9'

/**
 * Pinned, for later ones want the registry's parent pom, which is not published. Its own unpacking cuts long
 * file names short (and so loses jars), hence `tar`.
 */
const dependencyPlugin = 'org.apache.maven.plugins:maven-dependency-plugin:2.8'

const pomOf = (kafkaVersion: string): string => `<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>postrider</groupId><artifactId>local-kafka</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>${kafkaVersion}</version>
    </dependency>
    <dependency>
      <groupId>org.slf4j</groupId><artifactId>slf4j-simple</artifactId><version>1.7.36</version>
    </dependency>
  </dependencies>
</project>
`

/** Where jars are kept: outside any checkout, so that every clone shares one download. */
export function defaultCacheDir(env: NodeJS.ProcessEnv = process.env): string {
  if (env.POSTRIDER_CACHE) return resolve(env.POSTRIDER_CACHE)
  return join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'postrider')
}

/**
 * Finds Java and makes sure that the jars of Kafka and the registry (160 MB to get the first time) are in the
 * cache folder. What is fetched must be what is pinned. `onProgress` gets short texts for one line that is written over
 * and over. Safe to call from several processes at once: each gets its own copy, and the first to finish puts it into
 * place whole. Throws a `local` error that says what to do when Java or Maven is missing, Maven fails, or a file is not
 * the pinned one.
 */
export async function ensureLocalParts(options: PartsOptions = {}): Promise<LocalParts> {
  const env = options.env ?? process.env
  const { onProgress = () => {}, check = checkPinned } = options
  const cacheDir = resolve(options.cacheDir ?? defaultCacheDir(env))
  const kafkaVersion = env.POSTRIDER_KAFKA_VERSION || newestKafka
  const java = await findJava(env)
  const kafka = join(cacheDir, `kafka-${kafkaVersion}`)
  const registry = join(cacheDir, `apicurio-registry-${registryVersion}`)
  const get = { env, signal: options.signal }
  await ensureFolder(cacheDir, kafka, async (folder) => {
    const pomFile = join(folder, 'pom.xml')
    await writeFile(pomFile, pomOf(kafkaVersion))
    const goal = [`${dependencyPlugin}:copy-dependencies`, '-DincludeScope=runtime']
    const report = (progress: string) => onProgress(`getting Kafka ${kafkaVersion} with Maven: ${progress}`)
    await runMaven(['-f', pomFile, ...goal, `-DoutputDirectory=${folder}`], folder, report, get)
    await check(basename(kafka), folder)
  })
  await ensureFolder(cacheDir, registry, async (folder) => {
    const name = `apicurio-registry-app`
    const artifact = `io.apicurio:${name}:${registryVersion}:tar.gz:all`
    const report = (progress: string) =>
      onProgress(`getting Apicurio Registry ${registryVersion} with Maven: ${progress}`)
    const goal = [`${dependencyPlugin}:copy`, `-Dartifact=${artifact}`, `-DoutputDirectory=${folder}`]
    await runMaven(goal, folder, report, get)
    await check(basename(registry), folder)
    const archive = join(folder, `${name}-${registryVersion}-all.tar.gz`)
    await run('tar', ['-xzf', archive, '-C', folder], folder, () => {}, get)
    await rm(archive)
  })
  return {
    java,
    kafkaClassPath: join(kafka, '*'),
    registryClassPath: `${join(registry, '*')}:${join(registry, 'lib', '*')}`,
    kafkaFlags: archiveFlags(`${kafka}.jsa`),
    registryFlags: archiveFlags(`${registry}.jsa`),
    archiveFiles: { kafka: `${kafka}.jsa`, registry: `${registry}.jsa` },
  }
}

/** A JVM passes over an archive that is not its own. */
const archiveFlags = (file: string): string[] => (existsSync(file) ? [`-XX:SharedArchiveFile=${file}`] : [])

/** Fills a folder beside its place and renames it into it, so that what is in place is always whole. */
async function ensureFolder(
  cacheDir: string,
  folder: string,
  fill: (folder: string) => Promise<void>,
): Promise<void> {
  if (await isFolder(folder)) return
  await mkdir(cacheDir, { recursive: true }).catch((error: unknown) => {
    const advice = 'set POSTRIDER_CACHE to a folder that can be written'
    throw new PostriderError('local', `cannot write to the cache folder: ${messageOf(error)}: ${advice}`)
  })
  await removeLeftovers(cacheDir)
  const partial = `${folder}.partial-${process.pid}-${randomBytes(4).toString('hex')}`
  try {
    await mkdir(partial)
    await fill(partial)
    await rename(partial, folder)
  } catch (error) {
    // Another process was first: its copy is as good as ours.
    if (!(await isFolder(folder))) throw error
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

const isFolder = (path: string) =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )

/** Removes what downloads that were killed have left behind. */
async function removeLeftovers(cacheDir: string): Promise<void> {
  for (const name of await readdir(cacheDir)) {
    const pid = /\.partial-(\d+)-/.exec(name)?.[1]
    if (pid && !isAlive(Number(pid))) await rm(join(cacheDir, name), { recursive: true, force: true })
  }
}

/** Runs Maven non-interactively, and reports its progress in files and megabytes. */
async function runMaven(
  args: readonly string[],
  cwd: string,
  onProgress: (text: string) => void,
  options: { env: NodeJS.ProcessEnv; signal: AbortSignal | undefined },
): Promise<void> {
  const maven = await findMaven(options.env)
  let files = 0
  onProgress('starting')
  await run(
    maven,
    args,
    cwd,
    (output) => {
      files += output.match(/Downloaded from .*\.(?:jar|gz) /g)?.length ?? 0
      const bytes = /\(1\): (\d+(?:\.\d+)?\/\d+ MB)/.exec(output)?.[1]
      onProgress(bytes ?? `${files} files`)
    },
    options,
  )
}

function run(
  command: string,
  args: readonly string[],
  cwd: string,
  onOutput: (text: string) => void,
  options: { env: NodeJS.ProcessEnv; signal: AbortSignal | undefined },
): Promise<void> {
  const { signal } = options
  const env = withoutSecrets(options.env)
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, env, signal, stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    const take = (chunk: string) => {
      output = (output + chunk).slice(-20_000)
      onOutput(chunk)
    }
    child.stdout.setEncoding('utf8').on('data', take)
    child.stderr.setEncoding('utf8').on('data', take)
    child.once('error', (error) => {
      reject(new PostriderError('local', `${command} failed: ${messageOf(error)}`, { cause: error }))
    })
    child.once('close', (code) => {
      if (code === 0) return resolve()
      reject(new PostriderError('local', `${command} failed with exit code ${code}: ${reasonIn(output)}`))
    })
  })
}

/** Maven runs plugins and reads proxies and mirrors from its environment; Postrider's secrets are none of its business. */
const withoutSecrets = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !secretNames.has(name)))

const secretNames = new Set(
  Object.entries(variables).flatMap(([name, { secret }]) => (secret ? [name, `${name}_FILE`] : [])),
)

/** Maven's first line of error, without its colours, else the last line of output. */
function reasonIn(output: string): string {
  const lines = output.replace(/\u001b\[[0-9;]*m/g, '').split(/[\r\n]+/)
  const error = lines.find((line) => /\[ERROR\]/.test(line)) ?? lines.filter((line) => line.trim()).at(-1)
  return (error ?? 'it wrote nothing').replace('[ERROR] ', '').trim().slice(0, 400)
}
