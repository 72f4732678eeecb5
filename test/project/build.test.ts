import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { promisify } from 'node:util'
import * as checkout from '../../src/adapters/http/browser-sdk.ts'
import { commitOf, versionOf } from '../../src/version.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const dist = join(root, 'dist')

before(async () => {
  await assert.doesNotReject(readdir(dist), 'dist/ is there: `npm run build` makes it, as `npm test` does')
})

test('the published package runs inside node_modules, with every command of the checkout', async (t) => {
  const project = await temporaryFolder(t)
  const installed = join(project, 'node_modules/postrider')
  await mkdir(join(project, 'node_modules'))
  await cp(dist, installed, { recursive: true })
  // Its dependencies, as an installation would put them beside it.
  const { dependencies } = JSON.parse(await readFile(join(installed, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  await symlink(join(root, 'node_modules'), join(installed, 'node_modules'))
  assert.ok(dependencies.kafkajs)
  const published = await run(process.execPath, [join(installed, 'src/main.js'), '--help'], { cwd: project })
  const checkout = await run(process.execPath, [join(root, 'src/main.ts'), '--help'], { cwd: project })
  assert.equal(published.stdout, checkout.stdout)
  assert.match(published.stdout, /setup/)
  const version = await run(join(installed, 'src/main.js'), ['--version'], { cwd: project })
  assert.equal(version.stdout, `${versionOf(dist)}\n`)
  // The folder itself has no commit: the build has put it there.
  if (commitOf(root) !== null) assert.match(version.stdout, /^\d+\.\d+\.\d+(?:$|-dev\+[0-9a-f]{7}$)/m)
})

test('the published package contains schemas, type declarations and licence, and nothing else of the checkout', async () => {
  for (const folder of ['schemas', 'presets'])
    assert.deepEqual(await readdir(join(dist, folder)), await readdir(join(root, folder)))
  const files = await readdir(dist, { recursive: true })
  for (const file of ['LICENSE', 'src/main.js', 'src/config/config.d.ts'])
    assert.ok(files.includes(file), file)
  assert.deepEqual(
    files.filter((file) => /(?<!\.d)\.ts$/.test(file) || file.startsWith('test')),
    [],
  )
  const manifest = JSON.parse(await readFile(join(dist, 'package.json'), 'utf8')) as Record<string, unknown>
  assert.ok(!manifest.private && !manifest.scripts && !manifest.devDependencies)
  assert.deepEqual(manifest.bin, { postrider: 'src/main.js' })
  // What npm would leave out of the package is missing where it is installed.
  const folders = (await readdir(dist, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  const packed = folders.map(({ name }) => name).filter((name) => name !== 'client')
  assert.deepEqual(manifest.files, packed.sort())
})

test('the published package serves the same SDK for browsers, and depends on nothing for it', async () => {
  const built = (await import(join(dist, 'src/adapters/http/browser-sdk.js'))) as typeof checkout
  const [ofBuild, ofCheckout] = [await built.readBrowserSdk(), await checkout.readBrowserSdk()]
  assert.equal((await built.filesOfBrowserSdk()).folder, join(dist, 'browser-sdk'))
  assert.equal(ofBuild.script.etag, ofCheckout.script.etag)
  assert.deepEqual([...ofBuild.chunks.keys()].toSorted(), [...ofCheckout.chunks.keys()].toSorted())
  const { dependencies } = JSON.parse(await readFile(join(dist, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  assert.ok(!Object.keys(dependencies).some((name) => name.startsWith('@segment/')))
})
