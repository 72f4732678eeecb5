import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { findJava } from '../../src/local/java-server.ts'
import {
  defaultCacheDir,
  ensureLocalParts,
  newestKafka,
  registryVersion,
  checkPinned,
  digestsOf,
} from '../../src/local/parts.ts'
import { pins } from '../../src/local/pins.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

/** A folder with commands that are shell scripts, to be a PATH. */
async function pathWith(t: TestContext, scripts: Record<string, string>): Promise<string> {
  const folder = await temporaryFolder(t)
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`)
    await chmod(join(folder, name), 0o755)
  }
  return folder
}

const java17 = `echo 'openjdk version "17.0.15" 2025-04-15' >&2`

/** Does what Maven does here, as far as the cache can tell. Called as: mvn … -DoutputDirectory=<folder>. */
const fakeMaven = `
for arg; do case $arg in -DoutputDirectory=*) out=\${arg#-DoutputDirectory=};; esac; done
case "$*" in
  *copy-dependencies*) echo kafka > "$out/kafka.jar";;
  *) /bin/mkdir -p "$out/x/lib" && echo app > "$out/x/app.jar" && echo lib > "$out/x/lib/lib.jar" &&
     PATH=/bin:/usr/bin tar -czf "$out/apicurio-registry-app-3.0.9-all.tar.gz" -C "$out/x" app.jar lib;;
esac`
/** What it brings is made here. */
const check = async () => {}

test('without Java, one line names all alternatives', async (t) => {
  const env = { PATH: await pathWith(t, {}) }
  await assert.rejects(ensureLocalParts({ env }), {
    code: 'local',
    message:
      'Java is not installed, and the local Kafka and schema registry need Java 17 or later and Maven: install both, ' +
      'or install Docker and run everything in containers with `docker compose up`, ' +
      'or set KAFKA_BROKERS and SCHEMA_REGISTRY_URL to those that you have',
  })
})

test('without Java but with Docker, the line names the command to use', async (t) => {
  const env = { PATH: await pathWith(t, { docker: '' }) }
  await assert.rejects(ensureLocalParts({ env }), {
    code: 'local',
    message: /install both, or run everything in containers with `docker compose up` \(Docker is here\)/,
  })
})

test('a Java that is too old or cannot be run is named', async (t) => {
  const old = await pathWith(t, { java: `echo 'java version "1.8.0_412"' >&2` })
  await assert.rejects(findJava({ PATH: old }), { message: /\/java is Java 8, which is too old,/ })
  const broken = await pathWith(t, { java: 'exit 1' })
  await assert.rejects(findJava({ PATH: broken }), { message: /\/java does not run,/ })
})

test('JAVA_HOME’s Java is preferred to the PATH’s', async (t) => {
  const home = await temporaryFolder(t)
  await mkdir(join(home, 'bin'))
  await writeFile(join(home, 'bin/java'), `#!/bin/sh\n${java17}\n`, { mode: 0o755 })
  const path = await pathWith(t, { java: 'exit 1' })
  assert.equal(await findJava({ PATH: path, JAVA_HOME: home }), join(home, 'bin/java'))
})

test('a missing Maven is reported as long as the jars are not in the cache, and not after that', async (t) => {
  const cacheDir = await temporaryFolder(t)
  const env = { PATH: await pathWith(t, { java: java17 }) }
  await assert.rejects(ensureLocalParts({ cacheDir, env }), {
    code: 'local',
    message: /^Maven is not installed/,
  })
  assert.deepEqual(await readdir(cacheDir), [])
  await mkdir(join(cacheDir, 'kafka-4.3.1'))
  await mkdir(join(cacheDir, 'apicurio-registry-3.0.9'))
  await ensureLocalParts({ cacheDir, env })
})

test('Maven’s environment does not contain Postrider’s secrets', async (t) => {
  const cacheDir = await temporaryFolder(t)
  const mvn = `/usr/bin/env >> '${cacheDir}/env'\n${fakeMaven}`
  const env = {
    PATH: await pathWith(t, { java: java17, mvn, tar: 'PATH=/bin:/usr/bin exec tar "$@"' }),
    MAVEN_OPTS: '-Xmx1g',
    SECRETS_KEY: 'a secret',
    ADMIN_TOKEN_FILE: '/a/path',
    KAFKA_SASL_PASSWORD: 'another',
  }
  await ensureLocalParts({ cacheDir, env, check })
  const given = await readFile(join(cacheDir, 'env'), 'utf8')
  assert.match(given, /^MAVEN_OPTS=-Xmx1g$/m)
  assert.doesNotMatch(given, /SECRETS_KEY|ADMIN_TOKEN|PASSWORD/)
})

test('a failed download is reported with its cause and leaves nothing behind, and the next one succeeds', async (t) => {
  const cacheDir = await temporaryFolder(t)
  const failing = await pathWith(t, {
    java: java17,
    mvn: `echo '[ERROR] Could not transfer artifact: repository unreachable'; exit 1`,
  })
  await assert.rejects(ensureLocalParts({ cacheDir, env: { PATH: failing } }), {
    code: 'local',
    message: /mvn failed with exit code 1: Could not transfer artifact: repository unreachable/,
  })
  assert.deepEqual(await readdir(cacheDir), [])

  const working = await pathWith(t, { java: java17, mvn: fakeMaven })
  await ensureLocalParts({ cacheDir, check, env: { PATH: `${working}:/usr/bin:/bin` } })
  assert.deepEqual((await readdir(cacheDir)).sort(), ['apicurio-registry-3.0.9', 'kafka-4.3.1'])
})

test('several processes may fill the cache concurrently, and files of a killed one are removed', async (t) => {
  const cacheDir = await temporaryFolder(t)
  await mkdir(join(cacheDir, 'kafka-4.3.1.partial-99999999-00'))
  const path = await pathWith(t, { java: java17, mvn: fakeMaven })
  const env = { PATH: `${path}:/usr/bin:/bin` }
  await Promise.all([1, 2, 3].map(() => ensureLocalParts({ cacheDir, env, check })))
  assert.deepEqual((await readdir(cacheDir)).sort(), ['apicurio-registry-3.0.9', 'kafka-4.3.1'])
  assert.deepEqual((await readdir(join(cacheDir, 'kafka-4.3.1'))).sort(), ['kafka.jar', 'pom.xml'])
})

test('what Maven brings is used only if it is what Postrider was tested with', async (t) => {
  const cacheDir = await temporaryFolder(t)
  const path = await pathWith(t, { java: java17, mvn: fakeMaven })
  await assert.rejects(ensureLocalParts({ cacheDir, env: { PATH: `${path}:/usr/bin:/bin` } }), {
    code: 'local',
    message: /^kafka-4\.3\.1: .*\.jar, so nothing of it is used\. See which server it came from/,
  })
  assert.deepEqual(await readdir(cacheDir), [])
  assert.ok(Object.keys(pins[`kafka-${newestKafka}`]!).length > 40)
  assert.deepEqual(Object.keys(pins[`apicurio-registry-${registryVersion}`]!), [
    `apicurio-registry-app-${registryVersion}-all.tar.gz`,
  ])
})

test('a jar that is another one, missing or too many is named; a version that is not pinned is not checked', async (t) => {
  const folder = await temporaryFolder(t)
  const put = (name: string, text: string) => writeFile(join(folder, name), text)
  await Promise.all([put('a.jar', 'a'), put('b.jar', 'b'), put('pom.xml', 'no jar')])
  const pinned = { 'kafka-1': await digestsOf(folder) }
  await checkPinned('kafka-1', folder, pinned)
  await put('b.jar', 'bad')
  await assert.rejects(checkPinned('kafka-1', folder, pinned), {
    message:
      /^kafka-1: b\.jar is not the file that Postrider was tested with \(its SHA-512 is .{88}, not .{88}\)/,
  })
  await rm(join(folder, 'b.jar'))
  await assert.rejects(checkPinned('kafka-1', folder, pinned), { message: /Maven did not bring b\.jar/ })
  await Promise.all([put('b.jar', 'b'), put('c.jar', 'c')])
  await assert.rejects(checkPinned('kafka-1', folder, pinned), {
    message: /Maven brought c\.jar, which is no part/,
  })
  await checkPinned('kafka-2', folder, pinned)
})

test('a user’s checkouts share one cache, whose place can be changed', () => {
  assert.equal(defaultCacheDir({ XDG_CACHE_HOME: '/c' }), '/c/postrider')
  assert.equal(defaultCacheDir({ XDG_CACHE_HOME: '/c', POSTRIDER_CACHE: '/d' }), '/d')
})
