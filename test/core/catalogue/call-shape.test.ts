import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { CallShapes, maxFields, type CallShape } from '../../../src/core/catalogue/call-shape.ts'
import { pathText } from '../../../src/operators/catalogue/catalogue.ts'

const none = { properties: null, traits: null, context: null }

const shapeOf = (properties: string): CallShape => new CallShapes().of({ ...none, properties })

/** By path as it is shown; the map itself is left out. */
const kindsOf = (properties: string): Record<string, string> =>
  Object.fromEntries(
    shapeOf(properties)
      .fields.slice(1)
      .map(({ path, kinds }) => [pathText(path).slice('properties.'.length), kinds.join(' ')]),
  )

test('each field of a call is known by its path and kind, those of elements of arrays together', () => {
  const properties = {
    total: 12.5,
    count: 3,
    isNew: false,
    coupon: null,
    note: 'as a text',
    products: [{ sku: 'a', price: 1 }, { sku: 'b', price: 2.5, tags: ['x'] }, 7],
    empty: {},
    none: [],
    'a.b': 1,
    'a b': { '[]': 1 },
    '"': 1,
  }
  assert.deepEqual(kindsOf(JSON.stringify(properties)), {
    total: 'number',
    count: 'integer',
    isNew: 'boolean',
    coupon: 'null',
    note: 'string',
    products: 'array',
    'products[]': 'object integer',
    'products[].sku': 'string',
    'products[].price': 'integer number',
    'products[].tags': 'array',
    'products[].tags[]': 'string',
    empty: 'object',
    none: 'array',
    '"a.b"': 'integer',
    '"a b"': 'object',
    '"a b"."[]"': 'integer',
    '"\\""': 'integer',
  })
})

const kinds: [json: string, kind: string][] = [
  ['1', 'integer'],
  ['1.0', 'integer'],
  ['1e3', 'integer'],
  ['-0', 'integer'],
  ['12345678901234567890', 'integer'],
  ['0.5', 'number'],
  ['1e400', 'number'],
  ['"2026-01-02"', 'date'],
  ['"2026-02-30"', 'string'],
  ['"2026-01-02T03:04:05.006Z"', 'date-time'],
  ['"2026-01-02T03:04:05+01:00"', 'date-time'],
  ['"2026-01-02T03:04:05"', 'string'],
  ['"2026-13-02T03:04:05Z"', 'string'],
  ['"1f0f5a0e-7d0c-4b53-8a0e-0123456789ab"', 'uuid'],
  ['"1f0f5a0e-7d0c-4b53-8a0e-0123456789ag"', 'string'],
  ['"ann@example.com"', 'email'],
  ['"ann@example"', 'string'],
  ['"ann..b@example.com"', 'string'],
  ['"Ann, mail ann@example.com"', 'string'],
  ['""', 'string'],
]

test('numbers without a fraction are integers, and texts of a form are known by it', () => {
  for (const [json, kind] of kinds) assert.equal(kindsOf(`{"a":${json}}`).a, kind, json)
})

test('of a key that is data, such as an address, a number or an id, nothing is kept', () => {
  const keys = [
    'ann@example.com',
    '4711',
    '0123456789abcdef',
    '1f0f5a0e-7d0c-4b53-8a0e-0123456789ab',
    'x'.repeat(101),
  ]
  for (const key of keys) {
    assert.deepEqual(
      kindsOf(JSON.stringify({ [key]: { seen: true } })),
      { '*': 'object', '*.seen': 'boolean' },
      key,
    )
  }
  assert.deepEqual(Object.keys(kindsOf('{"added":1,"v2":1,"*":1,"beefbeefbeefbeef":1}')), [
    'added',
    'v2',
    '"*"',
    'beefbeefbeefbeef',
  ])
})

test('no shape holds a value, and the same fields give the same shape, whatever the values', () => {
  const shapes = new CallShapes()
  const secret = fc.stringMatching(/^[a-z]{6,12}$/).map((text) => `hush${text}`)
  fc.assert(
    fc.property(fc.array(secret, { minLength: 3, maxLength: 3 }), fc.integer(), (texts, number) => {
      const call = (given: string[], count: number) =>
        shapes.of({
          properties: JSON.stringify({ text: given[0], list: [given[1]], count }),
          traits: JSON.stringify({ within: { text: given[2] } }),
          context: null,
        })
      const shape = call(texts, number)
      assert.equal(shape, call(['one', 'two', 'three'], 4))
      assert.doesNotMatch(JSON.stringify(shape), /hush/)
    }),
  )
})

test('what JSON.parse gives of any object, a shape has, kind for kind', () => {
  const nameOf = (value: unknown): string =>
    value === null
      ? 'null'
      : Array.isArray(value)
        ? 'array'
        : typeof value === 'number'
          ? Number.isInteger(value)
            ? 'integer'
            : 'number'
          : typeof value
  const add = (into: Map<string, Set<string>>, path: unknown[], value: unknown): void => {
    const key = JSON.stringify(path)
    into.set(key, (into.get(key) ?? new Set()).add(nameOf(value)))
    if (Array.isArray(value)) for (const each of value) add(into, [...path, 0], each)
    else if (typeof value === 'object' && value !== null)
      for (const [name, each] of Object.entries(value)) add(into, [...path, name], each)
  }
  // Neither of a form nor data.
  const word = fc.stringMatching(/^[g-z"\\.é\u2028]{1,4}$/)
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.oneof(
        word,
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.boolean(),
        fc.constant(null),
      ),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(word, tie('value'), { maxKeys: 4 }),
    ),
  }))
  fc.assert(
    fc.property(fc.dictionary(word, value, { maxKeys: 5 }), fc.boolean(), (properties, isSpaced) => {
      const expected = new Map<string, Set<string>>()
      add(expected, ['properties'], properties)
      fc.pre(expected.size <= maxFields)
      const { fields, omitted } = shapeOf(JSON.stringify(properties, null, isSpaced ? 2 : 0))
      assert.equal(omitted, 0)
      assert.deepEqual(new Map(fields.map(({ path, kinds }) => [path, new Set<string>(kinds)])), expected)
    }),
  )
})

test('what goes too deep, or is too much, is left out and counted', () => {
  const deep = shapeOf(`${'{"a":'.repeat(50)}1${'}'.repeat(50)}`)
  assert.equal(deep.fields.length, 11)
  assert.equal(deep.omitted, 1)
  const wide = shapeOf(
    JSON.stringify(Object.fromEntries(Array.from({ length: 400 }, (_, at) => [`k${at}`, at]))),
  )
  assert.deepEqual([wide.fields.length, wide.omitted], [maxFields, 101])
  // More than a stack has frames.
  const keys = Array.from({ length: 100_000 }, (_, at) => [`k${at}`, at])
  const wider = shapeOf(JSON.stringify(Object.fromEntries(keys)))
  assert.deepEqual([wider.fields.length, wider.omitted], [maxFields, 99_701])
  const long = shapeOf(JSON.stringify({ ['y'.repeat(90)]: { ['z'.repeat(90)]: { more: 1 } }, short: 1 }))
  assert.deepEqual([long.fields.length, long.omitted], [4, 1])
  const hostile = `${'['.repeat(16_000)}${']'.repeat(16_000)}`
  assert.equal(shapeOf(`{"a":${hostile}}`).omitted, 1)
})

test('a map that is no JSON has no fields, and takes none from the other maps', () => {
  for (const properties of ['no JSON', '{"a":', '{"a":1}x', '[1', '']) {
    const { fields } = new CallShapes().of({ properties, traits: '{"b":1}', context: properties })
    assert.deepEqual(
      fields.map(({ path }) => path),
      ['["traits"]', '["traits","b"]'],
      properties,
    )
  }
})
