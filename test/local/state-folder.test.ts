import assert from 'node:assert/strict'
import { chmod, mkdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { DevState } from '../../src/cli/dev/dev.ts'
import { startChild } from '../../src/local/child-process.ts'
import { claimStateFolder } from '../../src/local/state-folder.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8)

test('a part’s state folder, the parents created for it, and the files of its child process are readable by this user only', async (t) => {
  const folder = await temporaryFolder(t)
  const dataDir = join(folder, '.postrider', 'kafka')
  await claimStateFolder(dataDir, 'Kafka')
  assert.deepEqual([await modeOf(join(folder, '.postrider')), await modeOf(dataDir)], ['700', '700'])
  await chmod(dataDir, 0o755)
  await claimStateFolder(dataDir, 'Kafka')
  assert.equal(await modeOf(dataDir), '700', 'one that was made before')
  const child = await startChild({
    command: 'sh',
    args: ['-c', 'echo records > segment; mkdir topic'],
    cwd: dataDir,
    env: { PATH: process.env.PATH ?? '' },
    logFile: join(dataDir, 'kafka.log'),
  })
  assert.deepEqual(await child.exited, { code: 0, signal: null })
  const modes = await Promise.all(
    ['segment', 'topic', 'kafka.log'].map((name) => modeOf(join(dataDir, name))),
  )
  assert.deepEqual(modes, ['600', '700', '600'])
})

test('`dev` makes its folder and dev.env readable by this user only, also if they were open before', async (t) => {
  const checkout = await temporaryFolder(t)
  await writeFile(join(checkout, 'package.json'), '{"name":"postrider"}')
  await mkdir(join(checkout, '.postrider'))
  await chmod(join(checkout, '.postrider'), 0o755)
  const state = new DevState(checkout)
  await state.set({ ADMIN_TOKEN: 'token' })
  assert.deepEqual([await modeOf(state.folder), await modeOf(join(state.folder, 'dev.env'))], ['700', '600'])
})
