import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const root = join(import.meta.dirname, '..', '..')
const page = readFileSync(join(root, 'docs', 'security.md'), 'utf8')

/** The page's paths below test/, as far as they are in code. */
const pathsIn = (text: string): string[] => [...text.matchAll(/`(test\/[^`]*)`/g)].map(([, path]) => path!)

interface Table {
  head: string[]
  rows: string[][]
}

const tables: Table[] = [...page.matchAll(/(?:^\|.*\n)+/gm)].map(([text]) => {
  const [head, , ...rows] = text
    .trimEnd()
    .split('\n')
    .map((line) => line.split('|').slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim()))
  return { head: head!, rows }
})

test('every test that docs/security.md names exists', () => {
  const named = pathsIn(page)
  assert.ok(named.length > 30, 'the page was not read')
  assert.deepEqual(page.match(/\btest\/[\w/.-]+/g), named, 'a path that is not in code')
  for (const path of named) {
    assert.match(path, /\.test\.ts$/)
    assert.ok(existsSync(join(root, path)), path)
  }
})

test('each attack in docs/security.md names a test that tries it', () => {
  const [trusted, ...promised] = tables
  assert.equal(trusted!.head[1], 'is trusted with')
  assert.ok(promised.length > 0)
  for (const { head, rows } of promised) {
    assert.deepEqual(head, ['attack', 'an attacker needs', 'what stays bounded', 'test'])
    assert.ok(rows.length > 0)
    for (const [attack, needs, bounded, tests = '', ...more] of rows) {
      assert.ok(attack && needs && bounded && more.length === 0, attack)
      assert.notDeepEqual(pathsIn(tests), [], `${attack}: no test`)
    }
  }
})
