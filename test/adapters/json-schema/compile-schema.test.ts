import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { RE2JS } from 're2js'
import { compileSchema, schemaRefusal } from '../../../src/adapters/json-schema/compile-schema.ts'
import { isPlain, linearRegExp } from '../../../src/adapters/json-schema/schema-rules.ts'
import type { JsonSchema } from '../../../src/core/tracking-plan/tracking-plan.ts'

const found = (schema: JsonSchema, value: unknown): string[] =>
  compileSchema(schema)(JSON.stringify(value)).map(({ path, rule }) => `${path.join('.')} ${rule}`)

test('a violation names properties of the schema and its keyword, and nothing of the call', () => {
  const order = {
    type: 'object',
    properties: {
      order_id: { type: 'string', pattern: '^O-[0-9]+$' },
      total: { type: 'number', minimum: 0 },
      products: {
        type: 'array',
        items: { type: 'object', required: ['sku'], properties: { price: { type: 'number' } } },
      },
      by_user: { type: 'object', additionalProperties: { type: 'integer' } },
    },
    required: ['order_id', 'currency'],
    additionalProperties: false,
  }
  assert.equal(schemaRefusal(order), null)
  assert.deepEqual(found(order, { order_id: 'O-1', currency: 'EUR', total: 3.5 }), ['* additionalProperties'])
  const wrong = {
    order_id: 'secret',
    total: -1,
    products: [{ sku: 1, price: 'x' }, { price: 2 }],
    by_user: { 'ann@example.com': 'x' },
    'ben@example.com': 1,
  }
  assert.deepEqual(found(order, wrong).sort(), [
    '* additionalProperties',
    'by_user.* type',
    'currency required',
    'order_id pattern',
    'products.*.price type',
    'products.*.sku required',
    'total minimum',
  ])
})

test('each pattern is its own, and one of a choice that none fits is one violation', () => {
  const schema = {
    properties: {
      a: { type: 'string', pattern: '^a+$' },
      b: { type: 'string', pattern: '^b+$' },
      c: { anyOf: [{ type: 'string' }, { type: 'null' }] },
    },
  }
  assert.deepEqual(found(schema, { a: 'aa', b: 'bb', c: null }), [])
  assert.deepEqual(found(schema, { a: 'bb', b: 'aa', c: 1 }), ['a pattern', 'b pattern', 'c anyOf'])
})

test('what every object has from its prototype is missing all the same', () => {
  assert.deepEqual(found({ required: ['constructor'] }, {}), ['constructor required'])
})

test('uniqueItems compares objects whatever the order of their keys', () => {
  const schema = { properties: { list: { type: 'array', uniqueItems: true } } }
  assert.deepEqual(found(schema, { list: [{ a: 1, b: 2 }, 1, '1'] }), [])
  assert.deepEqual(
    found(schema, {
      list: [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    }),
    ['list uniqueItems'],
  )
})

test('thousands of faults in one call come to ten violations', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 50 }, (_, index) => [`p${index}`, { type: 'string' }]),
  )
  const value = Object.fromEntries(Object.keys(properties).map((name) => [name, 1]))
  assert.equal(found({ properties }, value).length, 10)
  assert.deepEqual(found({ items: { type: 'string' } }, Array(100_000).fill(1)), ['* type'])
})

for (const [what, schema, refusal] of [
  [
    'a misspelt keyword',
    { properties: { total: { mimimum: 0 } } },
    'properties.total: there is no keyword "mimimum"',
  ],
  [
    'a wrong type',
    { properties: { total: { type: 'nmber' } } },
    /^properties\.total\.type must be equal to one of/,
  ],
  [
    'an unknown format',
    { properties: { at: { format: 'datetime' } } },
    /^properties\.at: there is no format "datetime"; there are date, time, date-time/,
  ],
  [
    'a remote reference',
    { properties: { a: { $ref: 'https://example.com/a.json' } } },
    'properties.a: $ref must lead to a place in the same schema, such as #/$defs/price',
  ],
  [
    'a reference to nothing',
    { properties: { a: { $ref: '#/$defs/b' } } },
    'properties.a: $ref "#/$defs/b" leads nowhere',
  ],
  [
    'a circle',
    { $defs: { a: { properties: { b: { $ref: '#/$defs/a' } } } } },
    '$defs.a.properties.b: $ref leads round in a circle',
  ],
  ['a name for others', { $id: 'https://example.com/a' }, 'it: $id is not taken'],
  [
    'a look-ahead',
    { properties: { a: { pattern: '(?=a)a' } } },
    'properties.a: the pattern "(?=a)a" cannot be used: patterns are those of RE2, without look-around and back-references',
  ],
  [
    'a back-reference',
    { patternProperties: { '(a)\\1': {} } },
    /^it: the pattern "\(a\)\\\\1" cannot be used/,
  ],
  [
    'another draft',
    { $schema: 'https://json-schema.org/draft/2020-12/schema' },
    'it: $schema is "https://json-schema.org/draft/2020-12/schema"; schemas are read as draft-07',
  ],
] as [string, JsonSchema, string | RegExp][])
  test(`${what} is refused with its place`, () => {
    const text = schemaRefusal(schema) ?? ''
    if (typeof refusal === 'string') assert.equal(text, refusal)
    else assert.match(text, refusal)
  })

test('references that double at each step are refused', () => {
  const $defs: Record<string, unknown> = { d0: { type: 'string' } }
  for (let step = 1; step <= 40; step++)
    $defs[`d${step}`] = { allOf: [{ $ref: `#/$defs/d${step - 1}` }, { $ref: `#/$defs/d${step - 1}` }] }
  assert.match(
    schemaRefusal({ $defs, allOf: [{ $ref: '#/$defs/d40' }] }) ?? '',
    /schemas with its references/,
  )
})

test('a pattern that takes ages elsewhere, long texts for formats and long lists are checked in no time', () => {
  const check = compileSchema({
    properties: {
      name: { type: 'string', pattern: '^(a+)+$' },
      uri: { type: 'string', format: 'uri' },
      list: { type: 'array', uniqueItems: true },
    },
  })
  const list = Array.from({ length: 6_000 }, (_, index) => ({ index }))
  const long = 'a'.repeat(60_000)
  // A backtracking engine would not come back within the life of this test.
  const faults = check(JSON.stringify({ name: `${long}b`, uri: `http://${long} `, list }))
  assert.deepEqual(
    faults.map(({ path, rule }) => `${path.join('.')} ${rule}`),
    ['name pattern', 'uri format'],
  )
})

test('patterns that V8 checks itself mean what they mean for RE2, and those that could take long are none of them', () => {
  const plain = ['^order-[0-9]+$', '^[A-Z]{2}\\d{4}$', '^\\w*@x', '^a?b$', '^[^a-c]+x{3}$', '^$']
  const others = ['a+', '^(a+)+$', '^a*a*$', '^a?a?a$', '^a+b?$', '^a|b$', '^.*x$', '^\\s+$', '^[[:alpha:]]$']
  const texts = fc.oneof(fc.string(), fc.stringMatching(/^(order-|[A-Z]{2})?[0-9a-cx@]*$/))
  for (const pattern of plain) {
    const [found, re2] = [linearRegExp(pattern), RE2JS.compile(RE2JS.translateRegExp(pattern))]
    assert.ok(isPlain(pattern), pattern)
    fc.assert(fc.property(texts, (text) => found.test(text) === re2.test(text)))
  }
  for (const pattern of others) assert.ok(!isPlain(pattern), pattern)
})
