import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { isPortFree } from '../../src/local/ports.ts'

const script = join(import.meta.dirname, '../../scripts/test.ts')

/** As a developer runs it: without what this run has set. */
function outside(): NodeJS.ProcessEnv {
  const { TEST_KAFKA_BROKERS: _a, TEST_REGISTRY_URL: _b, NODE_TEST_CONTEXT: _c, ...env } = process.env
  return env
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`a test run that ${signal} ends leaves no server and no file behind`, async (t) => {
    const run = spawn(process.execPath, [script, 'test/core/'], {
      env: outside(),
      stdio: ['ignore', 'ignore', 'pipe'],
    })
    t.after(() => run.kill('SIGKILL'))
    let told = ''
    for await (const chunk of run.stderr.setEncoding('utf8')) {
      told += chunk
      if (told.includes('ready after')) break
    }
    const ports = [...told.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port))
    assert.equal(ports.length, 2, told)
    run.kill(signal)
    const [code] = (await once(run, 'exit')) as [number]
    assert.equal(code, signal === 'SIGINT' ? 130 : 143)
    for (const port of ports) assert.ok(await isPortFree(port))
    const left = (await readdir(tmpdir())).filter((name) => name.startsWith(`postrider-test-${run.pid}-`))
    assert.deepEqual(left, [])
  })
}

test('a filter that matches no test file is wrong usage and starts nothing', async () => {
  const run = spawn(process.execPath, [script, 'no-such-test'], {
    env: outside(),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const told = (await run.stderr.setEncoding('utf8').toArray()).join('')
  assert.equal(told, 'no file under test/ matches no-such-test\n')
  assert.equal(run.exitCode ?? (await once(run, 'exit'))[0], 2)
})
