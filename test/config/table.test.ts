import assert from 'node:assert/strict'
import { test } from 'node:test'
import { settingsTable } from '../../src/config/table.ts'
import { variableNames } from '../../src/config/variables.ts'

test('the table has a row for every variable', () => {
  const rows = settingsTable().split('\n')
  assert.equal(rows.length, variableNames.length + 2)
  for (const name of variableNames) assert.ok(rows.some((row) => row.startsWith(`| \`${name}\``)))
})
