import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readYamlFile } from '../../../src/cli/yaml-file.ts'
import { settingsFile } from '../../../src/operators/settings/file-schema.ts'
import { PostriderError } from '../../../src/errors.ts'

function linesOf(text: string): string[] {
  try {
    readYamlFile(text, 'f.yml', settingsFile)
  } catch (error) {
    assert.ok(error instanceof PostriderError)
    return error.message.split('\n')
  }
  return []
}

test('a key that a map names twice is a fault of its line, wherever the map stands', () => {
  const text = `sources:
  - id: shop
    name: Shop
    id: web
destinations:
  - { id: crm, name: CRM, sourceIds: [shop], urls: [{ url: https://a.example/, url: https://b.example/ }] }
sources: []
`
  assert.deepEqual(linesOf(text), [
    'f.yml:7: Map keys must be unique',
    'f.yml:4: Map keys must be unique',
    'f.yml:6: Map keys must be unique',
  ])
  assert.deepEqual(linesOf('sources:\n  - { id: a, name: a }\n  - { id: b, name: b }\n'), [])
})

test('a file of 60,000 keys is refused in a time that grows with its length, and 100 faults of it are named', () => {
  const began = performance.now()
  const unknown = Array.from({ length: 60_000 }, (_, index) => `key-${index}: 1\n`).join('')
  for (const text of [
    unknown,
    `{ ${unknown.replaceAll('\n', ', ')} }`,
    unknown.replaceAll(/key-\d+/g, 'key'),
  ]) {
    const lines = linesOf(text)
    assert.equal(lines.length, 101)
    assert.match(lines.at(-1)!, /^and \d{5} more$/)
  }
  // Each key compared with each took more than a minute for one of them.
  assert.ok(performance.now() - began < 60_000)
})
