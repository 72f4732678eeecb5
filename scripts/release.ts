// Makes what is released, into release/: the npm packages `postrider` and `postrider-client`, the Helm chart, a software
// bill of materials and checksums. Two runs of one state make the same bytes.
//
//   npm run release -- --dry-run            makes everything and publishes nothing; --to FOLDER instead of release/
//   npm run release                         for a clean checkout of the tag v<version>; publishes both packages
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { messageOf } from '../src/errors.ts'
import { billOfMaterials } from './release/bill-of-materials.ts'
import { packChart } from './release/pack-chart.ts'
import { checkPublishable, readRelease } from './release/versions.ts'

const root = join(import.meta.dirname, '..')

try {
  main()
} catch (error) {
  console.error(messageOf(error))
  process.exitCode = 1
}

function main(): void {
  const { values } = parseArgs({
    options: { 'dry-run': { type: 'boolean' }, to: { type: 'string', default: join(root, 'release') } },
  })
  const release = readRelease(root)
  if (!values['dry-run']) {
    checkPublishable(root, release)
    // The build does not check them.
    execFileSync('npm', ['run', '--silent', 'types'], { cwd: root, stdio: 'inherit' })
  }
  const to = resolve(values.to)
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  execFileSync(process.execPath, [join(root, 'scripts/build.ts')], { stdio: 'inherit' })
  const packages = ['dist', 'dist/client'].map((folder) => npmPack(join(root, folder), to))
  packChart(join(root, 'ops/helm/postrider'), to, release)
  writeFileSync(
    join(to, `postrider-${release.version}.cdx.json`),
    `${JSON.stringify(billOfMaterials(root, release), null, 2)}\n`,
  )
  const sums = readdirSync(to)
    .sort()
    .map((name) => `${sha256(join(to, name))}  ${name}`)
  writeFileSync(join(to, 'SHA256SUMS'), `${sums.join('\n')}\n`)
  console.log(sums.join('\n'))
  if (values['dry-run']) console.log(`\nMade in ${to}; nothing is published.`)
  else for (const file of packages) execFileSync('npm', ['publish', file], { stdio: 'inherit' })
}

/** Gives every file the same time and owner, as npm does. */
function npmPack(folder: string, to: string): string {
  const options = ['--json', '--ignore-scripts', '--pack-destination', to]
  const [{ filename }] = JSON.parse(
    execFileSync('npm', ['pack', folder, ...options], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }),
  ) as [{ filename: string }]
  return join(to, filename)
}

function sha256(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex')
}
