import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { mutate } from '../../scripts/mutations/mutation.ts'
import { mutations } from '../mutations/catalogue.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

test('every mutation finds its text exactly once, changes it, and leaves valid syntax', async () => {
  const faults: string[] = []
  for (const mutation of mutations) {
    try {
      const before = await read(mutation.file)
      const after = mutate(before, mutation)
      assert.notEqual(after, before, mutation.id)
      assert.doesNotThrow(() => stripTypeScriptTypes(after), mutation.id)
    } catch (error) {
      faults.push(String(error))
    }
  }
  assert.deepEqual(faults, [])
})

test('a mutation whose text has changed gives an error that names it and its file', () => {
  const mutation = { ...mutations[0]!, id: 'no-brakes', file: 'src/car.ts', find: 'brake()' }
  for (const [text, times] of [
    ['drive()', 0],
    ['brake(); brake()', 2],
  ] as const) {
    assert.throws(() => mutate(text, mutation), {
      message: `no-brakes: src/car.ts has its text ${times} times, not once; update the mutation`,
    })
  }
})

test('every mutation has a unique id and an existing test, in a file that is listed with its promises', async () => {
  const pages = (await Promise.all(['test/README.md', 'test/operating.md'].map(read))).join('')
  const ids = new Set<string>()
  for (const { id, test } of mutations) {
    assert.match(id, /^[a-z0-9]+(-[a-z0-9]+)*$/)
    assert.ok(!ids.has(id), `two mutations have the id ${id}`)
    ids.add(id)
    assert.ok(pages.includes(`]: ${test.file}\n`), `${id}: no page lists ${test.file}`)
    const source = (await read(`test/${test.file}`)).replaceAll("\\'", "'")
    for (const part of [test.name, test.within ?? ''])
      assert.ok(source.includes(part), `${id}: test/${test.file} has no test "${part}"`)
  }
})
