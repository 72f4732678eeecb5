// JSON.parse is no reference here: where it is wrong is what this is about.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { allowsWebhooks } from '../../../src/core/call/check-call.ts'
import { canonicalObject } from '../../../src/core/json/canonical-json.ts'
import { parseJson, sameJson } from '../../../src/core/json/parse-json.ts'
import { someCall } from '../../support/calls/calls.ts'

/** As another source's call may come before: keys that end in a backslash. */
function parseForeign(...keys: string[]): void {
  for (const key of keys) JSON.parse(`{"first":[],${JSON.stringify(key)}:0}`)
}

test('a key with an escape is parsed as it is spelled, whatever keys were parsed before (nodejs/node#63785)', () => {
  parseForeign('\\', 'caf\\', 'Webhook\\')
  assert.deepEqual(Object.keys(parseJson('{"first":1,"\\"":2}') as object), ['first', '"'])
  assert.deepEqual(Object.keys(parseJson('{"first":1, "\\n" :2}') as object), ['first', '\n'])
  assert.equal(canonicalObject('{"first": 1, "caf\\u00e9": 2}'), '{"first":1,"café":2}')
  assert.equal(canonicalObject('{"first": 1, "caf\\u00e9": 1e400}'), '{"first":1,"café":1e400}')
  assert.ok(sameJson('{"first":1,"\\"":2}', '{"\\u0022":2,"first":1}'))
  assert.ok(!sameJson('{"first":1,"\\"":2}', '{"first":1,"\\n":2}'))
  const integrations = '{"first":1,"Webhook\\u0073":false}'
  assert.equal(allowsWebhooks(someCall({ integrations })), false)
})

test('invalid JSON is refused, with and without escaped keys', () => {
  for (const text of [
    '',
    '{',
    '{"\\n":1',
    '{"\\n":1}}',
    '{"\\x":1}',
    '{"\\n":01}',
    '{"\\n":1,}',
    '["\\n":1]',
  ])
    assert.throws(() => parseJson(text), SyntaxError, text)
})

/** Every unit by its code. */
const escaped = (text: string): string =>
  `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`

/** The text of a value with each string escaped whole, and space around everything. */
function spelled(value: unknown): string {
  if (typeof value === 'string') return ` ${escaped(value)}\n`
  if (Array.isArray(value)) return `[${value.map(spelled).join()} ]`
  if (value === null || typeof value !== 'object') return `\t${JSON.stringify(value)} `
  return `{${Object.entries(value)
    .map(([key, of]) => ` ${escaped(key)} :${spelled(of)}`)
    .join()}}`
}

test('property: text that JSON.stringify wrote is parsed, also with each character escaped', () => {
  const text = fc.oneof(fc.string(), fc.constantFrom('\\', '"', '\n', 'a\\', 'a"', '__proto__', '2', '1'))
  const value = fc.oneof(fc.dictionary(text, fc.oneof(text, fc.jsonValue())), fc.jsonValue())
  fc.assert(
    fc.property(value, (given) => {
      // As JSON has it: no -0, no undefined.
      const written = JSON.stringify(given)
      assert.equal(JSON.stringify(parseJson(written)), written)
      assert.equal(JSON.stringify(parseJson(spelled(given))), written)
    }),
    { numRuns: 3_000 },
  )
})
