import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { compileSchema } from '../../../src/adapters/json-schema/compile-schema.ts'
import { fitsSurely, fittingRule } from '../../../src/adapters/json-schema/fitting-text.ts'
import { formatNames } from '../../../src/adapters/json-schema/formats.ts'
import { parseJson } from '../../../src/core/json/parse-json.ts'
import type { JsonSchema } from '../../../src/core/tracking-plan/tracking-plan.ts'

/** By ajv alone: choices are not read where they lie. */
function parsedBy(schema: JsonSchema): (text: string) => boolean {
  const check = compileSchema({ allOf: [schema] })
  return (text) => {
    try {
      return check(text).length === 0
    } catch (error) {
      if (error instanceof SyntaxError || error instanceof RangeError) return false
      throw error
    }
  }
}

/** Nothing fits what is false. */
const lyingBy = (schema: JsonSchema) => {
  const rule = fittingRule(schema)
  return (text: string): boolean => rule !== null && fitsSurely(rule, text)
}
const fits = (schema: JsonSchema, text: string): boolean => lyingBy(schema)(text)

const names = ['a', 'b', 'c', 'constructor', 'ключ', '0']
const scalars = ['1', '-2.5', '0', '"a"', '"abc"', '"😀"', '""', 'true', 'false', 'null', '"2026-11-29"']

/** A schema that is read where the text lies. */
const { schema: schemas } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(true, false),
    fc.record(
      {
        type: fc.oneof(
          fc.constantFrom('string', 'number', 'integer', 'boolean', 'null', 'object', 'array'),
          fc.uniqueArray(fc.constantFrom('string', 'number', 'integer', 'null', 'object', 'array'), {
            minLength: 1,
          }),
        ),
        enum: fc.uniqueArray(
          fc.constantFrom(...scalars).map((text) => JSON.parse(text) as unknown),
          { minLength: 1 },
        ),
        minLength: fc.nat(3),
        maxLength: fc.nat(3),
        pattern: fc.constantFrom('^a', '^[a-z]+$', 'c$', '(a|b)'),
        format: fc.constantFrom(...formatNames),
        title: fc.constant('a title'),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      {
        minimum: fc.integer({ min: -3, max: 3 }),
        exclusiveMaximum: fc.double({ min: -3, max: 3, noNaN: true }),
        maximum: fc.constantFrom(0, 2.5, 1e300),
        const: fc.constantFrom(...scalars).map((text) => JSON.parse(text) as unknown),
      },
      { requiredKeys: [] },
    ),
    fc.record(
      { items: tie('schema'), minItems: fc.nat(2), maxItems: fc.nat(3), uniqueItems: fc.boolean() },
      { requiredKeys: [] },
    ),
    fc.record(
      {
        type: fc.constant('object'),
        properties: fc.dictionary(fc.constantFrom(...names), tie('schema')),
        required: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1 }),
        additionalProperties: tie('schema'),
      },
      { requiredKeys: [] },
    ),
  ),
}))

/** JSON as anybody may write it: spaces, escapes, keys that come twice, numbers that no double holds; and some that is none. */
const written = (spaces: readonly string[], keys: readonly string[], values: readonly string[]) =>
  fc.letrec<{ text: string }>((tie) => ({
    text: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constantFrom(...values),
      fc
        .tuple(fc.array(tie('text'), { maxLength: 3 }), fc.constantFrom(...spaces))
        .map(([items, space]) => `[${items.join(`${space},`)}]`),
      fc
        .tuple(
          fc.array(fc.tuple(fc.constantFrom(...keys), tie('text')), { maxLength: 4 }),
          fc.constantFrom(...spaces),
        )
        .map(([members, space]) => `{${members.map((member) => member.join(`:${space}`)).join(',')}}`),
    ),
  })).text

/** Making a schema ready for ajv takes far longer than a check. */
const severalOf = (texts: fc.Arbitrary<string>) => fc.array(texts, { minLength: 30, maxLength: 30 })

const plainKeys = names.map((name) => `"${name}"`)
const plain = written([''], plainKeys, scalars)
const hostile = written(
  ['', ' ', '\n', 'x'],
  [...plainKeys, '"__proto__"', '"\\u0061"', '"a\\\\b"', '"\ud800"', '"\n"', '""', 'a'],
  [
    ...scalars,
    ...[
      '1e400',
      '-1e400',
      '1e-400',
      '12345678901234567890',
      '1.0',
      '1E2',
      '-0',
      '01',
      '1.',
      '-',
      '.5',
      'NaN',
    ],
    ...[
      '"\\u0061"',
      '"\\n"',
      '"\\ud83d\\ude00"',
      '"\ud800"',
      '"\ud83d\ude00\udc00"',
      '"\t"',
      '"\\x"',
      '"a',
      'tru',
    ],
    ...['{"__proto__":1}', '[[[[]]]]', ''],
  ],
)

test('what fits where it lies fits when it is parsed, however it is written', () => {
  fc.assert(
    fc.property(schemas, severalOf(hostile), (schema, texts) => {
      const [isFitting, fitsParsed] = [lyingBy(schema), parsedBy(schema)]
      for (const text of texts) if (isFitting(text)) assert.ok(fitsParsed(text), text)
    }),
    { numRuns: 150 },
  )
})

test('what JSON.stringify wrote without an escape is parsed only where it does not fit', () => {
  fc.assert(
    fc.property(schemas, severalOf(plain), (schema, texts) => {
      // Whether items are unique is said by parsing them.
      fc.pre(!JSON.stringify(schema).includes('"uniqueItems":true'))
      const [isFitting, fitsParsed] = [lyingBy(schema), parsedBy(schema)]
      for (const text of texts.map((each) => JSON.stringify(parseJson(each))))
        assert.equal(isFitting(text), fitsParsed(text), text)
    }),
    { numRuns: 150 },
  )
})

test('a key in escapes, and one that has none of its own spelling, is left to the parser', () => {
  const aNumber = { properties: { a: { type: 'number' } } }
  assert.equal(fits(aNumber, '{"a":1}'), true)
  assert.equal(fits(aNumber, '{"\\u0061":1}'), false)
  assert.equal(fits(aNumber, '{"b":"\\n"}'), true)
  for (const name of ['__proto__', 'a\\b', 'a"b', '\ud800'])
    assert.equal(fittingRule({ properties: Object.fromEntries([[name, true]]) }), null)
})

test('each of many required keys counts, in any order', () => {
  const required = Array.from({ length: 31 }, (_, index) => `key ${index}`)
  const members = required.map((name) => `${JSON.stringify(name)}:1`)
  for (const some of [members, members.toReversed(), [...members, members[3]!]])
    assert.equal(fits({ required }, `{${some.join(',')}}`), true)
  for (const left of members)
    assert.equal(fits({ required }, `{${members.filter((member) => member !== left).join(',')}}`), false)
  assert.equal(fittingRule({ required: [...required, 'one more'] }), null)
})

for (const more of [
  { anyOf: [true] },
  { patternProperties: { a: true } },
  { $ref: '#' },
  { minProperties: 1 },
  { multipleOf: 2 },
  { nullable: true },
  { items: [true] },
  { properties: { a: { not: true } } },
] as JsonSchema[])
  test(`${JSON.stringify(more)} says more than is read where the text lies`, () => {
    assert.equal(fittingRule(more), null)
  })
