import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isJsonObject } from '../../../src/core/json/json-object.ts'

/** The rule itself, slowly. */
function parsesToAnObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

const objects = [
  '{}',
  ' \t\r\n{ } \n',
  '{"a":1}',
  '{"a":{"b":[{},[],[[{"c":null}]]]},"d":[1,2,3]}',
  '{"":"","\\"":"\\\\","\\u00e9\\ud800":"\\b\\f\\n\\r\\t\\/"}',
  '{"a":-0,"b":0.50,"c":1e5,"d":-12.30E-07,"e":1E+2,"f":123456789012345678901234567890}',
  '{"a":true,"b":false,"c":null}',
  '{"a":"\u2028\u007f\ud83d\ude00\ud800"}',
  '{"a":1,"a":2,"__proto__":3}',
  '{ "a" : [ 1 , 2 ] , "b" : { "c" : 3 } }',
]

const others = [
  '',
  ' ',
  '{',
  '}',
  '[]',
  '"{}"',
  'null',
  '1',
  '{}{}',
  '{},"userId":"x"',
  '{}}',
  '{"a":1},"userId":"x"',
  '{"a":1}}',
  '{"a":1',
  '{"a":[1}',
  '{"a":[1]]',
  '{"a":{"b":1]}',
  '{"a"}',
  '{"a":}',
  '{a:1}',
  "{'a':1}",
  '{"a":1,}',
  '{,}',
  '{"a":1 "b":2}',
  '{"a" 1}',
  '{1:2}',
  '{"a":[,]}',
  '{"a":[1,]}',
  '{"a":"}',
  '{"a":"\\"}',
  '{"a":"\\x"}',
  '{"a":"\\u12g4"}',
  '{"a":"\\u123',
  '{"a":"\n"}',
  '{"a":"\u0000"}',
  '{"a":"\u001f"}',
  '{"a":01}',
  '{"a":1.}',
  '{"a":.5}',
  '{"a":+1}',
  '{"a":-}',
  '{"a":1e}',
  '{"a":1e+}',
  '{"a":0x1}',
  '{"a":NaN}',
  '{"a":tru}',
  '{"a":nulll}',
  '{"a":undefined}',
  '{}//',
  '/**/{}',
  '\ufeff{}',
  '\u00a0{}',
  '{}\u0000',
]

test('a JSON object is recognized however it is spelled', () => {
  for (const text of objects) assert.equal(isJsonObject(text), true, text)
})

test('nothing else is accepted, and no text can escape from its place in the body', () => {
  for (const text of others) assert.equal(isJsonObject(text), false, JSON.stringify(text))
})

test('the tables above agree with JSON.parse', () => {
  for (const text of [...objects, ...others])
    assert.equal(isJsonObject(text), parsesToAnObject(text), JSON.stringify(text))
})

test('nesting of a hundred thousand levels neither overflows the stack nor gives a wrong result', () => {
  const depth = 100_000
  const open = '{"a":['.repeat(depth)
  const close = ']}'.repeat(depth)
  assert.equal(isJsonObject(`${open}${close}`), true)
  assert.equal(isJsonObject(`${open}${close}}`), false)
  assert.equal(isJsonObject(`${open}${close.slice(0, -1)}`), false)
  assert.equal(isJsonObject(`${open}}${close}`), false)
})

test('property: valid, damaged and random text is judged as JSON.parse judges it', () => {
  const json = fc.json({ maxDepth: 5 })
  const object = fc
    .dictionary(fc.string({ unit: 'binary' }), fc.jsonValue())
    .map((value) => JSON.stringify(value))
  const damaged = fc
    .tuple(fc.oneof(json, object), fc.nat(), fc.nat(3), fc.constantFrom(...'{}[]",:\\0.eE+-tfn \n\u0001u'))
    .map(([text, where, cut, char]) => {
      const at = where % (text.length + 1)
      return text.slice(0, at) + char + text.slice(at + cut)
    })
  const soup = fc.string({
    unit: fc.constantFrom(...'{}[]",:\\01.eE+- \n', 'true', 'null', '"a":', '{"a":'),
    maxLength: 12,
  })
  fc.assert(
    fc.property(fc.oneof(json, object, damaged, soup, fc.string()), (text) => {
      assert.equal(isJsonObject(text), parsesToAnObject(text), JSON.stringify(text))
    }),
    { numRuns: 5_000 },
  )
})
