import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalObject } from '../../../src/core/json/canonical-json.ts'
import { ObjectText } from '../../../src/core/json/object-text.ts'

// First, for nothing has been read yet.
for (const text of [
  '',
  'null',
  '[1]',
  '{"a":1',
  '{"a":1}x',
  '{"a":01}',
  '{"a":1.0}',
  '{"\\u0061":1}',
  '{"a":1,"a":2}',
  '{ }',
])
  test(`${text || 'nothing'} is to be parsed`, () => {
    assert.equal(ObjectText.of(text), null)
  })

test('a member is its JSON as it stands in the text', () => {
  const text = '{"a":"x}\\"","b":{"a":[2],"b":"a"},"":0,"c":"\\"c\\":1"}'
  // Once by a scan, and once by what was found when it was checked.
  for (const members of [ObjectText.of(text)!, canonicalObject(text) && ObjectText.of(text)!]) {
    assert.ok(members)
    assert.equal(members.member('a'), '"x}\\""')
    assert.equal(members.member('b'), '{"a":[2],"b":"a"}')
    assert.equal(members.object('b', '{"a":[2],"b":"a"}')!.member('a'), '[2]')
    assert.equal(members.member(''), '0')
    assert.equal(members.member('c'), '"\\"c\\":1"')
    assert.equal(members.member('d'), null)
  }
  assert.equal(ObjectText.of('{}')!.member('a'), null)
})

test('the members of a text are its own, whatever was read in between', () => {
  const texts = Array.from({ length: 9 }, (_, n) => JSON.stringify({ ['x'.repeat(n)]: n, a: { b: n } }))
  for (const text of texts) assert.equal(canonicalObject(text), text)
  canonicalObject('{"another":{"one":1,"two":2},"three":3}')
  texts.forEach((text, n) => {
    assert.equal(ObjectText.of(text)!.member('a'), `{"b":${n}}`)
    assert.equal(ObjectText.of(text)!.member('x'.repeat(n)), String(n))
  })
})
