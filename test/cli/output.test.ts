import assert from 'node:assert/strict'
import { test } from 'node:test'
import { table } from '../../src/cli/terminal.ts'

test('columns are as wide as their widest cell, and numbers are right-aligned', () => {
  const rows = [
    ['crm', 3],
    ['warehouse', 120],
  ]
  assert.equal(
    table(['destination', 'attempts'], rows),
    ['DESTINATION  ATTEMPTS', 'crm                 3', 'warehouse         120'].join('\n'),
  )
})

test('foreign text cannot move the cursor', () => {
  assert.equal(table(['name'], [['a\u001b[2Jb\nc\u202e']]), 'NAME\na?[2Jb?c?')
})
