import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { settingsTable } from '../../src/config/table.ts'
import { variableNames } from '../../src/config/variables.ts'

/** The formatter aligns the README's columns; what counts is the cells. */
const cellsOf = (table: string): string[] => table.split('\n').map((row) => row.replace(/ {2,}/g, ' '))

test('the README’s table of settings is the one that the code makes', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8')
  const held = /<!-- settings -->\n+([\s\S]*?)\n+<!-- \/settings -->/.exec(readme)?.[1]
  const anew =
    'put the output of `node -e "import(\'./src/config/table.ts\').then((it) => console.log(it.settingsTable()))"` ' +
    'into README.md between <!-- settings --> and <!-- /settings -->'
  assert.ok(held, anew)
  const made = cellsOf(settingsTable())
  const cells = cellsOf(held)
  assert.deepEqual([cells[0], ...cells.slice(2)], [made[0], ...made.slice(2)], anew)
})

test('the table has a row for every variable', () => {
  const rows = settingsTable().split('\n')
  assert.equal(rows.length, variableNames.length + 2)
  for (const name of variableNames) assert.ok(rows.some((row) => row.startsWith(`| \`${name}\``)))
})
