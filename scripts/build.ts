// Builds what can be published: the package `postrider` in dist/ and the package `postrider-client` in dist/client/.
// dist/ has JavaScript and type declarations under dist/src, the schemas and the web page where the code looks for them, and
// a package.json without what only a checkout needs. (Node runs TypeScript as it is, but not below node_modules.) Types are not
// checked once more: `npm run types` does it, for `npm test` and before a release.
import { spawnSync } from 'node:child_process'
import { chmod, cp, glob, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { filesOfBrowserSdk } from '../src/adapters/http/browser-sdk.ts'
import { bundlePage } from '../src/console/page/bundle.ts'
import { commitOf, isBetweenReleases } from '../src/version.ts'
import { makeClientPackage } from './packages/client-package.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

interface Manifest {
  version: string
  bin: Record<string, string>
  exports?: Record<string, { types: string; default: string }>
  license: string
  [key: string]: unknown
}

await rm(dist, { recursive: true, force: true })
const tsc = join(root, 'node_modules/typescript/bin/tsc')
const { status } = spawnSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], {
  cwd: root,
  stdio: 'inherit',
})
if (status !== 0) process.exit(status ?? 1)

// What stands beside the code and is read at run time.
for await (const file of glob('src/**/*.!(ts)', { cwd: root, exclude: ['src/web/**'] })) await copy(file)
// The web page, as one script and one style sheet.
await mkdir(join(dist, 'web'))
for (const [name, content] of await bundlePage()) await writeFile(join(dist, 'web', name), content)
for (const path of ['schemas', 'presets', 'ops/systemd', 'LICENSE']) await copy(path)
const sdk = await filesOfBrowserSdk()
for (const path of sdk.paths) await cp(join(sdk.folder, path), join(dist, 'browser-sdk', path))
await cp(join(root, 'scripts/packages/postrider.md'), join(dist, 'README.md'))

const manifest = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as Manifest
const { name, version, description, license, type, engines, dependencies } = manifest
// Of a release the version says all; two builds of it have the same bytes.
const gitHead = isBetweenReleases(manifest.version) ? process.env.COMMIT || commitOf(root) : null
const bin = Object.fromEntries(
  Object.entries(manifest.bin).map(([command, file]) => [command, toJavaScript(file)]),
)
const published = {
  name,
  version,
  ...(gitHead && { gitHead }),
  description,
  license,
  type,
  engines,
  bin,
  // Not the client, which is a package of its own.
  files: ['browser-sdk', 'ops', 'presets', 'schemas', 'src', 'web'],
  ...exportsOf(manifest),
  dependencies,
}
await writeFile(join(dist, 'package.json'), `${JSON.stringify(published, null, 2)}\n`)
for (const file of Object.values(bin)) await chmod(join(dist, file), 0o755)
makeClientPackage(dist, join(dist, 'client'), { version, license })

async function copy(path: string): Promise<void> {
  await mkdir(dirname(join(dist, path)), { recursive: true })
  await cp(join(root, path), join(dist, path), { recursive: true })
}

function toJavaScript(file: string): string {
  return file.replace(/\.ts$/, '.js')
}

/** The entries that applications import: in the checkout `exports` names the TypeScript files. */
function exportsOf(manifest: Manifest): Pick<Manifest, 'exports'> {
  if (!manifest.exports) return {}
  const entries = Object.entries(manifest.exports).map(([entry, target]) => {
    const file = toJavaScript(target.default)
    return [entry, { types: file.replace(/\.js$/, '.d.ts'), default: file }]
  })
  return { exports: Object.fromEntries(entries) }
}
