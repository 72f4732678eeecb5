import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { headerText } from '../../../src/core/delivery/static-headers.ts'

test('a usual id stays unchanged', () => {
  assert.equal(headerText('node-next-1767225600000-6f1c:crm'), 'node-next-1767225600000-6f1c:crm')
})

test('characters that a header cannot contain are percent-encoded', () => {
  assert.equal(headerText('m 1\r\nX-Evil: 1:crm'), 'm%201%0D%0AX-Evil:%201:crm')
  assert.equal(headerText('größe-€:crm'), 'gr%C3%B6%C3%9Fe-%E2%82%AC:crm')
  assert.equal(headerText('50%:crm'), '50%25:crm')
})

test('every id becomes printable ASCII, and different ids stay different', () => {
  const id = fc.string({ unit: 'grapheme' })
  fc.assert(
    fc.property(id, id, (one, other) => {
      assert.match(headerText(one), /^[\x21-\x7e]*$/)
      if (one !== other) assert.notEqual(headerText(one), headerText(other))
    }),
  )
})
