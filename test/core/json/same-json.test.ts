import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { sameJson } from '../../../src/core/json/parse-json.ts'

const same: [string, string][] = [
  ['1', '1.0'],
  ['1.50', '1.5'],
  ['100', '1e2'],
  ['1E+2', '10e1'],
  ['0', '-0.00'],
  ['12345678901234567890', '1234567890123456789e1'],
  ['"A"', '"\\u0041"'],
  ['{"a":1,"b":[true,null]}', '{"b":[true,null],"a":1.0}'],
  ['{"a":1,"a":2}', '{"a":2}'],
]
const different: [string, string][] = [
  ['1', '"1"'],
  ['1', '-1'],
  ['12345678901234567890', '12345678901234567891'],
  ['0.1', '0.10000000000000000001'],
  ['null', 'false'],
  ['null', '{}'],
  ['[]', '{}'],
  ['[1,2]', '[2,1]'],
  ['{"a":null}', '{}'],
  ['{"number":"1e0"}', '1'],
  ['{"members":[]}', '{}'],
  ['[["a",1]]', '{"a":1}'],
  ['{"__proto__":1}', '{}'],
]

for (const [one, other] of same) test(`${one} is the same as ${other}`, () => assert(sameJson(one, other)))
for (const [one, other] of different)
  test(`${one} is not the same as ${other}`, () => assert(!sameJson(one, other)))

test('values are compared at any depth', () => {
  const deep = `${'['.repeat(8_000)}${']'.repeat(8_000)}`
  assert(sameJson(deep, deep))
  assert(!sameJson(deep, `${deep} `))
})

test('values are the same exactly if they are deeply equal', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
      const [text, spaced] = [JSON.stringify(one), JSON.stringify(one, null, 1)]
      assert(sameJson(text, spaced))
      const equal = text === JSON.stringify(other)
      if (!equal && sameJson(text, JSON.stringify(other))) assert.deepEqual(one, other)
    }),
  )
})
