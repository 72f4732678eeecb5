import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { mutations } from '../../scripts/mutations/catalogue.ts'
import { mutate } from '../../scripts/mutations/mutation.ts'
import { withTable } from '../../scripts/mutations/table.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

test('every mutation finds its text exactly once, changes it, and leaves a program', async () => {
  for (const mutation of mutations) {
    const before = await read(mutation.file)
    const after = mutate(before, mutation)
    assert.notEqual(after, before, mutation.name)
    assert.doesNotThrow(() => stripTypeScriptTypes(after), mutation.name)
  }
})

test('a mutation whose text has changed is an error that names it and its file', () => {
  const mutation = { ...mutations[0]!, name: 'no brakes', file: 'src/car.ts', find: 'brake()' }
  for (const [text, times] of [
    ['drive()', 0],
    ['brake(); brake()', 2],
  ] as const) {
    assert.throws(() => mutate(text, mutation), {
      message: `"no brakes": its text stands in src/car.ts ${times} times, not once; bring it up to date`,
    })
  }
})

test('every mutation has a name of its own, a test that there is, and a promise whose row names that test', async () => {
  const rows = (await read('test/README.md')).split('\n')
  const names = new Set<string>()
  for (const { name, promise, test } of mutations) {
    assert.ok(!names.has(name), `two are called "${name}"`)
    names.add(name)
    const row = rows.find((each) => each.startsWith(`| ${promise} `))
    assert.ok(row, `${name}: no row of test/README.md promises "${promise}"`)
    assert.ok(row.includes(`(${test.file})`), `${name}: the row of "${promise}" does not name ${test.file}`)
    const source = (await read(`test/${test.file}`)).replaceAll("\\'", "'")
    for (const part of [test.name, test.within ?? ''])
      assert.ok(source.includes(part), `${name}: test/${test.file} has no test "${part}"`)
  }
})

test('test/README.md tells how each of them came out', async () => {
  const readme = await read('test/README.md')
  const table = readme.slice(readme.indexOf('| switched off'), readme.indexOf('<!-- /mutations -->'))
  const listed = table
    .split('\n')
    .slice(2)
    .filter((line) => line.startsWith('|'))
    .map((line) => line.split('|')[1]!.trim())
  assert.deepEqual(
    listed,
    mutations.map(({ name }) => name),
    'run `npm run test:mutations -- --write`',
  )
  assert.throws(() => withTable('no marks', ''), /has no <!-- mutations -->/)
})
