import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { layered, readDevEnv } from '../../src/config/dev-env.ts'

test('an upper layer overrides a lower one, and an empty value counts as not set', () => {
  assert.deepEqual(layered({ A: '1', B: '' }, { A: '2', B: '3' }, { B: '4', C: '5' }), {
    A: '1',
    B: '3',
    C: '5',
  })
})

test('a secret and its file are one setting: setting either in an upper layer hides both in lower ones', () => {
  assert.deepEqual(layered({ SECRETS_KEY_FILE: 'f' }, { SECRETS_KEY: 'k' }), { SECRETS_KEY_FILE: 'f' })
  assert.deepEqual(layered({ SECRETS_KEY: 'k' }, { SECRETS_KEY_FILE: 'f' }), { SECRETS_KEY: 'k' })
})

test('the file that dev writes is read anywhere in its checkout, and nowhere else', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'postrider-dev-env-'))
  t.after(() => rmSync(root, { recursive: true }))
  const inside = join(root, 'src', 'deep')
  mkdirSync(inside, { recursive: true })
  mkdirSync(join(root, '.postrider'))
  writeFileSync(join(root, '.postrider', 'dev.env'), '# by dev\nKAFKA_BROKERS=127.0.0.1:1\n')
  writeFileSync(join(root, 'package.json'), '{ "name": "another" }')
  assert.deepEqual(readDevEnv(inside), {})
  writeFileSync(join(root, 'package.json'), '{ "name": "postrider" }')
  assert.deepEqual({ ...readDevEnv(inside) }, { KAFKA_BROKERS: '127.0.0.1:1' })
})
