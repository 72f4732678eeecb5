import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { commitOf, versionOf } from '../src/version.ts'
import { temporaryFolder } from './support/deployment/rig.ts'

test('between two releases the version names the commit, wherever git keeps it', async (t) => {
  const folder = join(await temporaryFolder(t), 'checkout')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], {
      cwd: folder,
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim()
  await mkdir(folder)
  const manifest = join(folder, 'package.json')
  await writeFile(manifest, '{"version":"0.2.0-dev"}')
  assert.equal(commitOf(folder), null)
  assert.equal(versionOf(folder), '0.2.0-dev')
  git('init', '-q', '-b', 'main')
  assert.equal(versionOf(folder), '0.2.0-dev', 'without a commit')

  git('add', '-A')
  git('commit', '-qm', 'first')
  const first = git('rev-parse', 'HEAD')
  assert.equal(versionOf(folder), `0.2.0-dev+${first.slice(0, 7)}`)
  git('pack-refs', '--all')
  assert.equal(commitOf(folder), first)
  git('checkout', '-q', '--detach')
  assert.equal(commitOf(folder), first)
  git('checkout', '-qb', 'side/branch')
  git('commit', '-qm', 'second', '--allow-empty')
  const second = git('rev-parse', 'HEAD')
  assert.equal(commitOf(folder), second)
  git('worktree', 'add', '-q', '../other', 'main')
  assert.equal(commitOf(join(folder, '../other')), first)

  await writeFile(manifest, `{"version":"0.2.0-dev","gitHead":"${first}"}`)
  assert.equal(versionOf(folder), `0.2.0-dev+${first.slice(0, 7)}`, 'of a build')
  await writeFile(manifest, `{"version":"0.2.0","gitHead":"${first}"}`)
  assert.equal(versionOf(folder), '0.2.0', 'of a release')
})
