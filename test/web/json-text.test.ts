import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { indented, membersOf } from '../../src/web/components/json-text.ts'

test('JSON is indented without a change to any number or text', () => {
  const text = '{"big":9007199254740993,"price":3.50,"e":1E+2,"a":[{},[],[1,"{,}\\"\\\\"]],"o":{"k":null}}'
  assert.equal(
    indented(text),
    [
      '{',
      '  "big": 9007199254740993,',
      '  "price": 3.50,',
      '  "e": 1E+2,',
      '  "a": [',
      '    {},',
      '    [],',
      '    [',
      '      1,',
      '      "{,}\\"\\\\"',
      '    ]',
      '  ],',
      '  "o": {',
      '    "k": null',
      '  }',
      '}',
    ].join('\n'),
  )
  fc.assert(
    fc.property(fc.jsonValue(), (value) =>
      assert.equal(indented(JSON.stringify(value)), JSON.stringify(value, null, 2)),
    ),
  )
})

test('text that is no JSON is left alone, and what is deeply nested grows by a bounded factor', () => {
  for (const text of ['', '{"a":', 'a=1', '{a:1}']) assert.equal(indented(text), null)
  const deep = 2_000
  assert.ok(indented('['.repeat(deep) + ']'.repeat(deep))!.length < deep * 2 * 100)
})

test('the members of an object are found as they were sent', () => {
  const members = fc.dictionary(fc.string(), fc.jsonValue())
  fc.assert(
    fc.property(members, (object) => {
      const texts = new Map(Object.entries(object).map(([key, value]) => [key, JSON.stringify(value)]))
      assert.deepEqual(membersOf(JSON.stringify(object)), texts)
    }),
  )
  assert.deepEqual(
    membersOf(' { "a" : 3.50 , "b" : {"c":[1 ,2]} } '),
    new Map([
      ['a', '3.50'],
      ['b', '{"c":[1 ,2]}'],
    ]),
  )
})
