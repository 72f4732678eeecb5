import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/docs.ts'

const files = globSync('{src,test,bench,scripts}/**/*.{ts,tsx,css}', { cwd: root })
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

test('src/forwarder has at most nine folders', () => {
  const folders = new Set(
    globSync('src/forwarder/*/**/*.ts', { cwd: root }).map((file) => file.split('/')[2]),
  )
  assert.ok(folders.size > 0 && folders.size <= 9, [...folders].join(' '))
})

/** The promises, with the files that hold them. */
const promisePages = ['test/README.md', 'test/operating.md'].map((page) => ({ page, text: read(page) }))

test('every test file is listed with its promises, on pages of at most 40 KB', () => {
  const listed = promisePages.flatMap(({ text }) =>
    [...text.matchAll(/^\[[^\]]+\]: (\S+\.test\.ts)$/gm)].map(([, file]) => `test/${file}`),
  )
  assert.deepEqual([...new Set(listed)].sort(), files.filter((file) => file.endsWith('.test.ts')).sort())
  for (const { page, text } of promisePages) assert.ok(Buffer.byteLength(text) <= 40_000, page)
})

test('every label of these pages refers to a file, and every file is listed with a promise', () => {
  for (const { page, text } of promisePages) {
    const [promises] = text.split(/\n(?=\[[^\]]+\]: )/s) as [string]
    const defined = new Set([...text.matchAll(/^\[([^\]]+)\]: /gm)].map(([, label]) => label!))
    const used = new Set([...promises.matchAll(/\[([^\]]+)\](?![(:])/g)].map(([, label]) => label!))
    assert.ok(defined.size > 0, page)
    assert.deepEqual([...used].sort(), [...defined].sort(), page)
  }
})
