import { execFile } from 'node:child_process'
import { access, constants } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { PostriderError } from '../errors.ts'

const run = promisify(execFile)

const oldestJava = 17

/** The file that a command's name stands for on the PATH, or null. */
export async function findCommand(name: string, env: NodeJS.ProcessEnv): Promise<string | null> {
  for (const folder of (env.PATH ?? '').split(delimiter)) {
    if (folder === '') continue
    const file = join(folder, name)
    if (await isExecutable(file)) return file
  }
  return null
}

function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/**
 * The `java` to run the local Kafka and registry with: JAVA_HOME's, else the PATH's. Throws a `local` error
 * that names both ways on when there is none of version 17 or later.
 */
export async function findJava(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  if (process.platform === 'win32') {
    throw await cannotRun('the local Kafka and registry do not run on Windows itself', env)
  }
  const ofHome = env.JAVA_HOME ? join(env.JAVA_HOME, 'bin', 'java') : null
  const java = ofHome && (await isExecutable(ofHome)) ? ofHome : await findCommand('java', env)
  if (java === null) throw await cannotRun('Java is not installed', env)
  const version = await javaVersion(java)
  if (version === null) throw await cannotRun(`${java} does not run`, env)
  if (version < oldestJava) throw await cannotRun(`${java} is Java ${version}, which is too old`, env)
  return java
}

/** The `mvn` that gets the jars. Only needed while they are not in the cache. */
export async function findMaven(env: NodeJS.ProcessEnv = process.env): Promise<string> {
  const maven = await findCommand('mvn', env)
  if (maven === null) throw await cannotRun('Maven is not installed', env)
  return maven
}

/** The one line about a tool that is missing: what, why it is needed, and both ways on. */
async function cannotRun(what: string, env: NodeJS.ProcessEnv): Promise<PostriderError> {
  const docker = (await findCommand('docker', env)) !== null
  return new PostriderError(
    'local',
    `${what}, and the local Kafka and schema registry need Java ${oldestJava} or later and Maven: ` +
      (docker
        ? 'install both, or run everything in containers with `docker compose up` (Docker is here)'
        : 'install both, or install Docker and run everything in containers with `docker compose up`') +
      ', or set KAFKA_BROKERS and SCHEMA_REGISTRY_URL to those that you have',
  )
}

/** The feature version: 17 of `17.0.15`, 8 of `1.8.0_412`; null when it is not known. */
async function javaVersion(java: string): Promise<number | null> {
  const answer = await run(java, ['-version'], { timeout: 20_000 }).catch(() => null)
  const found = /version "(?:1\.)?(\d+)/.exec(answer ? answer.stderr + answer.stdout : '')
  return found && Number(found[1])
}
