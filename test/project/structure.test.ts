import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
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

/** Folders of core that a folder takes values of; types may point both ways. */
function foldersTaken(): Map<string, Set<string>> {
  const folderOf = (file: string): string => dirname(file).replace(/^src\/core\/?/, '') || '.'
  const taken = new Map<string, Set<string>>()
  for (const file of files.filter((each) => each.startsWith('src/core/'))) {
    const from = folderOf(file)
    const all = taken.get(from) ?? new Set()
    taken.set(from, all)
    for (const [, clause, path] of read(file).matchAll(/^import (?!type )([^']*?) from '(\.[^']+)'/gm)) {
      const names = /\{([^}]*)\}/.exec(clause!)?.[1]?.split(',') ?? []
      const isOfTypes =
        names.length > 0 && names.every((name) => name.trim() === '' || /^\s*type /.test(name))
      const to = folderOf(normalize(join(dirname(file), path!)))
      if (!isOfTypes && to !== from) all.add(to)
    }
  }
  return taken
}

test('core can be read bottom up: its folders take values of each other in no circle', () => {
  const left = foldersTaken()
  assert.ok(left.size > 10)
  for (;;) {
    const lowest = [...left].filter(([, all]) => ![...all].some((folder) => left.has(folder)))
    if (lowest.length === 0) break
    for (const [folder] of lowest) left.delete(folder)
  }
  assert.deepEqual([...left.keys()], [])
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
