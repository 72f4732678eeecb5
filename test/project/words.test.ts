import assert from 'node:assert/strict'
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import ts from 'typescript'

const root = join(import.meta.dirname, '../..')

/** Files and folders whose language is checked. */
const checked = ['src', 'test', 'bench', 'scripts', 'schemas', 'docs', 'README.md', 'CONTRIBUTING.md']

/** Private words that were replaced by standard terms, with brackets so that this file does not match itself. */
const retired = [
  'lo[t]s?',
  'men[d](s|ed)?',
  'ane[w]',
  'maniet[h]',
  'hand-?over[s]?',
  'under wa[y]',
  'so man[y]',
  'hand(s|ed)? ove[r]',
]

async function filesIn(path: string): Promise<string[]> {
  if (/\.\w+$/.test(path)) return [path]
  const entries = await readdir(join(root, path), { recursive: true, withFileTypes: true })
  return (
    entries
      // A picture can hold any word, and nobody reads it there.
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.webp'))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
  )
}

const filesOf = async (paths: readonly string[]): Promise<string[]> =>
  (await Promise.all(paths.map(filesIn))).flat()

const read = (path: string): Promise<string> => readFile(join(root, path), 'utf8')

test('no retired word is used', async () => {
  const pattern = new RegExp(`\\b(${retired.join('|')})\\b`, 'i')
  const found: string[] = []
  for (const file of await filesOf(checked))
    for (const [index, line] of (await read(file)).split('\n').entries())
      if (pattern.test(line)) found.push(`${file}:${index + 1}: ${line.trim()}`)
  assert.deepEqual(found, [])
})

test('nothing refers to documents outside this repository', async () => {
  const pattern = /\b(desig[n]|contract[s]|glossar[y])\.md\b|\bfact[s]\//
  const found: string[] = []
  for (const file of [...(await filesOf(checked)), 'eslint.config.js'])
    if (pattern.test(await read(file))) found.push(file)
  assert.deepEqual(found, [])
})

test('no two exported types share a name', async () => {
  const declared = new Map<string, string[]>()
  for (const file of await filesIn('src')) {
    const source = ts.createSourceFile(file, await read(file), ts.ScriptTarget.Latest)
    for (const statement of source.statements) {
      if (!isType(statement) || !statement.name) continue
      if (!statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) continue
      const files = declared.get(statement.name.text)
      if (files) files.push(file)
      else declared.set(statement.name.text, [file])
    }
  }
  assert.ok(declared.size > 100)
  assert.deepEqual(
    [...declared].filter(([, files]) => files.length > 1),
    [],
  )
})

const isType = (statement: ts.Statement) =>
  ts.isInterfaceDeclaration(statement) ||
  ts.isTypeAliasDeclaration(statement) ||
  ts.isClassDeclaration(statement)
