import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { bareEnv } from '../support/deployment/bare-env.ts'
import { temporaryFolder } from '../support/deployment/rig.ts'

const lightRunner = join(import.meta.dirname, '../support/light-runner.ts')

/** Each fails by what nobody catches, and would wait for a minute else. */
const failing = `
import { EventEmitter } from 'node:events'
import { createServer } from 'node:http'
import { describe, test, after } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
const minute = (t) => delay(60_000, null, { signal: t.signal, ref: true })
test('good before', async () => { await delay(1) })
test('thrown in a timer', async (t) => { await null; setTimeout(() => { throw new Error('timer') }, 1); await minute(t) })
test('rejected', async (t) => { await delay(1); void Promise.reject(new Error('rejection')); await minute(t) })
test('rejected later', async (t) => { void (async () => { await delay(1); throw new Error('later') })(); await minute(t) })
test('emitted', async (t) => { setImmediate(() => new EventEmitter().emit('error', new Error('event'))); await minute(t) })
test('in a server', async (t) => {
  const server = createServer(() => { throw new Error('request') })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => { server.closeAllConnections(); server.close() })
  fetch('http://127.0.0.1:' + server.address().port).catch(() => {})
  await minute(t)
})
describe('suite', () => { test('in a suite', async (t) => { queueMicrotask(() => { throw new Error('task') }); await minute(t) }) })
test('with a hook', async () => { await delay(1); after(() => console.log('hook of its test')); await test('nested', () => {}) })
test('good after', async () => { console.log('after the hook'); await delay(1) })
`

test('what a test leaves uncaught fails that test, at once, and its hooks run with it', async (t) => {
  const file = join(await temporaryFolder(t), 'failing.test.mjs')
  await writeFile(file, failing)
  const args = ['--import', lightRunner, '--test-reporter=tap', file]
  const output = await new Promise<string>((resolve) => {
    const child = execFile(process.execPath, args, { env: bareEnv, timeout: 50_000 }, (_error, stdout) =>
      resolve(stdout),
    )
    t.after(() => child.kill())
  })
  const results = [...output.matchAll(/^ *((?:not )?ok) \d+ - (.*)$/gm)].map(
    ([, ok, name]) => `${ok} ${name}`,
  )
  assert.deepEqual(results, [
    'ok good before',
    ...[
      'thrown in a timer',
      'rejected',
      'rejected later',
      'emitted',
      'in a server',
      'in a suite',
      'suite',
    ].map((name) => `not ok ${name}`),
    ...['ok nested', 'ok with a hook', 'ok good after'],
  ])
  assert.ok(output.indexOf('hook of its test') < output.indexOf('after the hook'), output)
})
