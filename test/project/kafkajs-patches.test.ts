import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { patches } from '../../src/adapters/kafka/patches/index.ts'

const root = join(import.meta.dirname, '../..')
/** What installs patches, and is none. */
const others = ['index', 'patch']

test('each patch of kafkajs has a file, an entry in the list, a section in docs/kafkajs-patches.md and a test', () => {
  const files = readdirSync(join(root, 'src/adapters/kafka/patches'))
    .map((file) => basename(file, '.ts'))
    .filter((name) => !others.includes(name))
  const page = readFileSync(join(root, 'docs/kafkajs-patches.md'), 'utf8')
  const sections = new Map(
    page
      .split(/^## /m)
      .slice(1)
      .map((section) => [section.slice(0, section.indexOf('\n')), section]),
  )
  const names = patches.map(({ name }) => name)
  assert.deepEqual(names.toSorted(), files.toSorted())
  const rest = ['What kafkajs does not do here', 'Internals that are used unchanged']
  // In the order in which they are installed.
  assert.deepEqual([...sections.keys()], [...names, ...rest])
  for (const name of names) {
    for (const field of ['kafkajs', 'Instead', 'Changes', 'Upstream', 'Test', 'Remove when'])
      assert.match(sections.get(name)!, new RegExp(`^- \\*\\*${field}\\*\\* `, 'm'), name)
    const file = `test/adapters/kafka/patches/${name}.test.ts`
    assert.ok(existsSync(join(root, file)), file)
    assert.ok(sections.get(name)!.includes(`(../${file})`), `the section of ${name} names its test`)
  }
})
