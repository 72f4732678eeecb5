import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/docs.ts'

const files = globSync('{src,test,bench,scripts}/**/*.ts', { cwd: root })
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

test('no folder has more than 15 files', () => {
  const counts = new Map<string, number>()
  for (const file of files) counts.set(dirname(file), (counts.get(dirname(file)) ?? 0) + 1)
  assert.ok(counts.size > 50)
  assert.deepEqual(
    [...counts].filter(([, count]) => count > 15),
    [],
  )
})

test('no file of src has more than 300 lines', () => {
  const long = files
    .filter((file) => file.startsWith('src/'))
    .map((file) => [file, read(file).split('\n').length - 1] as const)
    .filter(([, lines]) => lines > 300)
  assert.deepEqual(long, [])
})

test('src/forwarder has at most nine folders', () => {
  const folders = new Set(
    globSync('src/forwarder/*/**/*.ts', { cwd: root }).map((file) => file.split('/')[2]),
  )
  assert.ok(folders.size > 0 && folders.size <= 9, [...folders].join(' '))
})

test('test/README.md lists every test file once, and is smaller than 40 KB', () => {
  const readme = read('test/README.md')
  const listed = [...readme.matchAll(/^\[[^\]]+\]: (\S+\.test\.ts)$/gm)].map(([, file]) => `test/${file}`)
  assert.deepEqual(listed.sort(), files.filter((file) => file.endsWith('.test.ts')).sort())
  assert.ok(Buffer.byteLength(readme) < 40_000)
})

test('every label in test/README.md refers to a file, and every file is listed with a promise', () => {
  const [text, definitions] = read('test/README.md').split(/\n(?=\[[^\]]+\]: )/s) as [string, string]
  const readme = read('test/README.md')
  const defined = new Set([...readme.matchAll(/^\[([^\]]+)\]: /gm)].map(([, label]) => label!))
  const used = new Set([...text.matchAll(/\[([^\]]+)\](?![(:])/g)].map(([, label]) => label!))
  assert.ok(definitions.length > 0)
  assert.deepEqual([...used].sort(), [...defined].sort())
})
