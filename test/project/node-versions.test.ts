import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, readFile, readdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { before, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { minNodeMajor, nodeFault } from '../../src/node-version.ts'
import { collectorDouble, writeKey } from '../support/calls/collector-double.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const dist = join(root, 'dist')

before(async () => {
  await assert.doesNotReject(readdir(dist), 'dist/ is there: `npm run build` makes it, as `npm test` does')
})

interface Manifest {
  engines: { node: string }
  dependencies: Record<string, string>
  devDependencies: Record<string, string>
  optionalDependencies: Record<string, string>
}
const read = async (path: string) => JSON.parse(await readFile(join(root, path), 'utf8')) as unknown

test('the required Node version is the one in package.json', async () => {
  const { engines } = (await read('package.json')) as Manifest
  assert.equal(engines.node, `>=${minNodeMajor}`)
  assert.equal(nodeFault('it', '20.20.2'), 'it needs Node 24 or later, and this is Node 20.20.2')
  assert.ok(nodeFault('it', '23.11.1'))
  for (const version of ['24.0.0', '24.21.0', '26.10.0', '100.0.0'])
    assert.equal(nodeFault('it', version), null)
})

test('the Node that npm installs is pinned for each platform and covered by the lockfile', async () => {
  const { dependencies, devDependencies, optionalDependencies } = (await read('package.json')) as Manifest
  const { packages } = (await read('package-lock.json')) as {
    packages: Record<
      string,
      {
        version: string
        integrity?: string
        hasInstallScript?: boolean
        optional?: boolean
        os?: string
        cpu?: string
        bin?: Record<string, string>
      }
    >
  }
  // Its install script fetches a binary that no lockfile covers.
  assert.ok(!('node' in { ...dependencies, ...devDependencies, ...optionalDependencies }))
  const platforms = Object.entries(optionalDependencies).map(([name, version]) => {
    const locked = packages[`node_modules/${name}`]!
    assert.match(version, /^\d+\.\d+\.\d+$/)
    assert.equal(locked.version, version)
    assert.match(locked.integrity!, /^sha512-/)
    assert.ok(Number.parseInt(version, 10) >= minNodeMajor && locked.optional && !locked.hasInstallScript)
    // By which `npm ci` puts it on the path of the scripts.
    assert.deepEqual(locked.bin, { node: 'bin/node' })
    return `${locked.os} ${locked.cpu}`
  })
  assert.deepEqual(platforms.sort(), ['darwin arm64', 'darwin x64', 'linux arm64', 'linux x64'])
})

/** The machine's own Node, where it is an old one; skips the test where there is none. */
function oldNode(t: TestContext): string | null {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const node = join(folder, 'node')
    if (folder.includes('node_modules') || !existsSync(node)) continue
    const version = execFileSync(node, ['--version'], { encoding: 'utf8' })
    if (/^v2[0-3]\./.test(version)) return node
  }
  t.skip('this machine has no Node 20 to 23 on its path')
  return null
}

/** An application that has installed the package, in a folder that goes away after the test. */
async function application(t: TestContext): Promise<string> {
  const project = await realpath(await temporaryFolder(t))
  const installed = join(project, 'node_modules/postrider')
  await mkdir(join(project, 'node_modules'))
  await cp(dist, installed, {
    recursive: true,
    filter: (path) => !path.includes('node_modules', dist.length),
  })
  await symlink(join(root, 'node_modules'), join(installed, 'node_modules'))
  await writeFile(join(project, 'package.json'), '{"type":"module"}')
  return project
}

test('on an older Node every command, and postrider/kafka, ends with one line that names the required version', async (t) => {
  const node = oldNode(t)
  if (node === null) return
  const project = await application(t)
  const main = join(project, 'node_modules/postrider/src/main.js')
  const needed = `needs Node 24 or later, and this is Node ${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1)}`
  for (const args of [
    ['--help'],
    ['forwarder'],
    ['run', 'collector', 'console'],
    ['produce', '--help'],
    [],
  ]) {
    const ended: { code?: number; stderr: string } = await run(node, [main, ...args]).catch(
      (error: unknown) => error as { code: number; stderr: string },
    )
    assert.deepEqual(
      [ended.code, ended.stderr],
      [1, `postrider ${needed} (${await realpath(node)})\n`],
      args.join(' '),
    )
  }
  const program = `import('postrider/kafka').catch(({ message }) => console.log(message))`
  const { stdout } = await run(node, ['--eval', program], { cwd: project })
  assert.equal(stdout, `postrider/kafka ${needed}\n`)
})

test('the client sends every type of call from the oldest Node that it supports', async (t) => {
  const node = oldNode(t)
  if (node === null) return
  const project = await application(t)
  const collector = await collectorDouble(t)
  collector.answer('reset', { status: 503 })
  await writeFile(
    join(project, 'app.js'),
    `import { Analytics, AnalyticsError } from 'postrider'
const analytics = new Analytics(${JSON.stringify(writeKey)}, {
  endpoint: ${JSON.stringify(collector.url)}, flushAt: 2, initialBackoff: 1, onError: (error) => console.log(error.message),
})
analytics.track({ userId: 'u-1', event: 'Größe 🦊', messageId: 'm-1', timestamp: '2012-337T00:30:08Z' })
analytics.alias({ userId: 'u-1', previousId: '\\ud800', messageId: 'm-2' })
analytics.identify({ userId: 7, traits: { plan: 'pro' }, messageId: 'm-3' })
await analytics.flush()
await analytics.ready()
analytics.page({ anonymousId: 'a', traits: { path: '/' }, messageId: 'm-4' })
analytics.screen({ userId: 'u', name: 'S', context: { library: { name: 'own' } }, messageId: 'm-5' })
analytics.group({ userId: 'u', groupId: 'g', integrations: { All: false }, messageId: 'm-6' })
try {
  analytics.track({ userId: 'u', event: 'E', properties: { a: 'x'.repeat(40_000) } })
} catch (error) {
  console.log(error instanceof AnalyticsError, error.code)
}
console.log(JSON.stringify(await analytics.close()))
`,
  )
  const { stdout } = await run(node, ['app.js'], { cwd: project })
  assert.equal(stdout, 'true message_too_large\n{"undelivered":[]}\n')
  assert.deepEqual([...collector.taken.keys()], ['m-1', 'm-2', 'm-3', 'm-4', 'm-5', 'm-6'])
  assert.equal(collector.taken.get('m-1')!.timestamp, '2012-12-02T00:30:08.000Z')
  assert.deepEqual(collector.faults, [])
})
