import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { closeSync, existsSync, openSync } from 'node:fs'
import { test } from 'node:test'

const module = new URL('../../src/adapters/log.ts', import.meta.url)

/** Runs code in a process of its own, for the log writes to the process's own streams. */
function logged(code: string): { out: string; err: string } {
  const script = `import { createLog } from ${JSON.stringify(module.href)}\n${code}`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module-typescript', '-e', script], {
    encoding: 'utf8',
  })
  return { out: stdout, err: stderr }
}

test('a log line is JSON with a level name and a time in UTC', () => {
  const { out, err } = logged(`createLog({ level: 'info', to: 'stdout' }).info({ delivery: 'm:d' }, 'hello')`)
  assert.equal(err, '')
  const line = JSON.parse(out) as Record<string, string>
  assert.equal(line.level, 'info')
  assert.equal(line.msg, 'hello')
  assert.equal(line.delivery, 'm:d')
  assert.match(line.time!, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
})

test('a secret that gets into a log line is redacted, by its value or by its field name', () => {
  const { out, err } = logged(`
    const log = createLog({ level: 'info', to: 'stderr', secrets: ['hunter"2-and-more', 'short'] })
    log.warn({ err: new Error('login with hunter"2-and-more failed') }, 'hunter"2-and-more')
    log.warn({ sharedSecret: 's3cr3t', target: { headers: { 'X-Key': 's3cr3t' } } }, 'a short line')`)
  assert.equal(out, '')
  assert.ok(!err.includes('hunter'))
  assert.ok(!err.includes('s3cr3t'))
  assert.match(err, /login with … failed/)
  assert.match(err, /a short line/)
  for (const line of err.trim().split('\n')) JSON.parse(line)
})

test(
  'a log whose disk is full costs lines, and nothing that writes them',
  { skip: existsSync('/dev/full') ? false : 'needs /dev/full' },
  () => {
    const full = openSync('/dev/full', 'w')
    const code = `import { createLog } from ${JSON.stringify(module.href)}
      const log = createLog({ level: 'info', to: 'stdout' })
      for (let line = 0; line < 10_000; line++) log.error({ err: new Error('x'.repeat(1_000)) }, 'a line')
      process.stderr.write('goes on')`
    const args = ['--input-type=module-typescript', '-e', code]
    const { status, stderr } = spawnSync(process.execPath, args, {
      stdio: ['ignore', full, 'pipe'],
      encoding: 'utf8',
    })
    closeSync(full)
    assert.deepEqual([status, stderr], [0, 'goes on'])
  },
)
