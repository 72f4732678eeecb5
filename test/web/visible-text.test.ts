import assert from 'node:assert/strict'
import { test } from 'node:test'
import { visibleText } from '../../src/web/app/visible-text.ts'

test('what draws nothing or turns a name around is shown, and what languages need stays', () => {
  assert.equal(visibleText('\u202Eexe.live'), '‹U+202E›exe.live')
  assert.equal(visibleText('shop\u200B'), 'shop‹U+200B›')
  assert.equal(visibleText('ad\u200Dmin'), 'ad‹U+200D›min')
  assert.equal(visibleText('\uFEFFid'), '‹U+FEFF›id')
  const stack = `e${'\u0301'.repeat(40)}`
  assert.equal(visibleText(stack), `e${'\u0301'.repeat(4)}‹…›`)
  for (const fine of ['crm', 'Łódź', 'می‌خواهم', '👩‍💻', 'สวัสดี', 'שלום', 'tiếng Việt', 'cafe\u0301'])
    assert.equal(visibleText(fine), fine)
})
