import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { cp, mkdir, readFile, readdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { minNodeMajor, nodeFault } from '../../src/node-version.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'
import { testedNodes } from '../support/packages/nodes.ts'

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

test('no package runs a script when it is installed, and each is covered by the lockfile', async (t) => {
  const { packages } = (await read('package-lock.json')) as {
    packages: Record<string, { integrity?: string; link?: boolean }>
  }
  for (const [path, { integrity }] of Object.entries(packages))
    if (path !== '') assert.match(integrity ?? 'none', /^sha512-/, path)

  // With the machine's npm, whatever it does by itself.
  const folder = await temporaryFolder(t)
  const manifest = (name: string, more: object) => JSON.stringify({ name, version: '1.0.0', ...more })
  await mkdir(join(folder, 'dependency'))
  const scripts = { install: 'touch installed', postinstall: 'touch installed' }
  await writeFile(join(folder, 'dependency/package.json'), manifest('dependency', { scripts }))
  await run('npm', ['pack', './dependency', '--ignore-scripts'], { cwd: folder })
  await writeFile(join(folder, 'package.json'), manifest('application', {}))
  await cp(join(root, '.npmrc'), join(folder, '.npmrc'))
  await run('npm', ['install', './dependency-1.0.0.tgz', '--offline', '--no-audit'], { cwd: folder })
  assert.deepEqual(await readdir(join(folder, 'node_modules/dependency')), ['package.json'])
})

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

const [oldest] = testedNodes()

test(
  'on an older Node every command, and postrider/kafka, ends with one line that names the required version',
  {
    skip: oldest!.skip,
  },
  async (t) => {
    const node = oldest!.path
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
    await assert.rejects(
      run(node, ['--input-type=module', '--eval', `import 'postrider/kafka'`], { cwd: project }),
      ({ stderr }: { stderr: string }) =>
        stderr.includes(`Error: postrider/kafka ${needed}`) && !/^ +at /m.test(stderr),
    )
  },
)
