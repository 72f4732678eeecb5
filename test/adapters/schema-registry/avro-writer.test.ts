import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import avro from 'avsc'
import type { Type, types } from 'avsc'
import fc from 'fast-check'
import { compileWriter } from '../../../src/adapters/schema-registry/avro-writer.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import type { RecordName } from '../../../src/adapters/schema-registry/schemas.ts'
import { bytes, double, int, listOf, long, text } from '../../support/calls/avro-values.ts'

type Fields = Record<string, unknown>

const names: RecordName[] = [
  'analyticsCall',
  'retryDelivery',
  'deadLetter',
  'deliveryEvent',
  'settingsEvent',
  'membership',
  'erasure',
  'suppression',
]
const schemas = names.map((name) => recordSchema(name))

const shortText = fc.string({ unit: 'binary', maxLength: 30 })

/** Values of a type. The texts in long lists are short, and so are lists in lists. */
function valuesOf(type: Type, someText = text, isInList = false): fc.Arbitrary<unknown> {
  switch (type.typeName) {
    case 'string':
      return someText
    case 'long':
      return long
    case 'int':
      return int
    case 'double':
      return double
    case 'boolean':
      return fc.boolean()
    case 'bytes':
      return bytes
    case 'enum':
      return fc.constantFrom(...(type as types.EnumType).symbols)
    case 'array': {
      const { itemsType } = type as types.ArrayType
      const few = fc.array(valuesOf(itemsType, someText, true), { maxLength: 2 })
      return isInList ? few : fc.oneof(listOf(valuesOf(itemsType, shortText, true)), few)
    }
    case 'record':
      return recordsOf(type, someText, isInList)
    default:
      return fc.option(valuesOf((type as types.UnwrappedUnionType).types[1]!, someText, isInList), {
        nil: null,
      })
  }
}

const recordsOf = (type: Type, someText = text, isInList = false): fc.Arbitrary<Fields> =>
  fc.record(
    Object.fromEntries(
      (type as types.RecordType).fields.map((field) => [
        field.name,
        valuesOf(field.type, someText, isInList),
      ]),
    ),
  )

/** avsc writes Buffers only. */
function withBuffers(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.length)
  if (Array.isArray(value)) return value.map(withBuffers)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withBuffers(each)]))
}

const byAvsc = (type: Type, record: object): Buffer => type.toBuffer(withBuffers(record))

test('every schema has a writer', () => {
  assert.equal(names.length, readdirSync(new URL('../../../schemas/', import.meta.url)).length)
})

for (const { name, type, write } of schemas) {
  test(`property: ${name} has the same bytes as avsc writes for the schema`, () => {
    const buffer = Buffer.alloc(1 << 22)
    fc.assert(
      fc.property(recordsOf(type), fc.nat(100), (given, at) => {
        const end = write(given, buffer, at)
        assert.ok(buffer.subarray(at, end).equals(byAvsc(type, given)))
      }),
      { numRuns: 200 },
    )
  })

  test(`property: for ${name}, a buffer that is too short is reported, and one of three times the bytes plus 100 is always long enough`, () => {
    fc.assert(
      fc.property(
        recordsOf(type, shortText),
        fc.nat(4),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (given, at, part) => {
          const expected = byAvsc(type, given)
          for (const length of [expected.length - 1, Math.floor(part * (expected.length - 1))])
            assert.equal(write(given, Buffer.alloc(at + length), at), -1)
          const enough = Buffer.alloc(at + expected.length * 3 + 100)
          assert.equal(write(given, enough, at), at + expected.length)
        },
      ),
      { numRuns: 200 },
    )
  })
}

/** The places of all values in a record, through lists and nested records, with the types there. */
function* placesOf(
  type: Type,
  path: readonly string[] = [],
): Generator<{ type: Type; path: readonly string[] }> {
  if (path.length > 0) yield { type, path }
  const inner = type.typeName === 'union:unwrapped' ? (type as types.UnwrappedUnionType).types[1]! : type
  if (inner.typeName === 'record')
    for (const field of (inner as types.RecordType).fields) yield* placesOf(field.type, [...path, field.name])
  if (inner.typeName === 'array') yield* placesOf((inner as types.ArrayType).itemsType, [...path, '0'])
}

/** A record in which nothing is null and no list is empty. */
function fullValue(type: Type): unknown {
  switch (type.typeName) {
    case 'array':
      return [fullValue((type as types.ArrayType).itemsType)]
    case 'record':
      return Object.fromEntries(
        (type as types.RecordType).fields.map((field) => [field.name, fullValue(field.type)]),
      )
    case 'union:unwrapped':
      return fullValue((type as types.UnwrappedUnionType).types[1]!)
    default:
      return fc.sample(valuesOf(type, shortText), { numRuns: 1, seed: 1 })[0]
  }
}

/** The record with another value in one place. */
function changed(record: unknown, [name, ...rest]: readonly string[], value: unknown): unknown {
  if (name === undefined) return value
  const given = (record as Fields)[name]
  const next = changed(given, rest, value)
  return Array.isArray(record) ? [next] : { ...(record as Fields), [name]: next }
}

/** Values that a type cannot hold. */
const wrongFor: Record<string, unknown[]> = {
  string: [undefined, 5, {}],
  long: [undefined, '1', 1.5, NaN, 2 ** 60, -(2 ** 60)],
  int: [undefined, '1', 1.5, NaN, 2 ** 31, -(2 ** 31) - 1],
  double: [undefined, '1'],
  boolean: [undefined, 1],
  bytes: [undefined, 'text', [1]],
  enum: [undefined, 'x', 1],
  array: [undefined, 'text', {}, new Set(['u-1'])],
  record: [undefined],
}

test('a value that does not fit the schema throws, at any depth', () => {
  const buffer = Buffer.alloc(1 << 17)
  for (const { name, type, write } of schemas) {
    const full = fullValue(type)
    assert.ok(write(full as object, buffer, 0) > 0)
    for (const { type: placed, path } of placesOf(type)) {
      const isNullable = placed.typeName === 'union:unwrapped'
      const inner = isNullable ? (placed as types.UnwrappedUnionType).types[1]! : placed
      for (const wrong of [...wrongFor[inner.typeName]!, ...(isNullable ? [] : [null])])
        assert.throws(
          () => write(changed(full, path, wrong) as object, buffer, 0),
          TypeError,
          `${name}: ${path.join('.')} = ${String(wrong)}`,
        )
    }
  }
})

test('a buffer that is one byte too short is reported, whichever field is the large one', () => {
  const large = '\u20ac'.repeat(1_000)
  for (const { type, write } of schemas) {
    const full = fullValue(type)
    for (const { type: placed, path } of placesOf(type)) {
      const inner =
        placed.typeName === 'union:unwrapped' ? (placed as types.UnwrappedUnionType).types[1]! : placed
      if (inner.typeName !== 'string' && inner.typeName !== 'bytes') continue
      const record = changed(full, path, inner.typeName === 'string' ? large : Buffer.from(large)) as object
      assert.equal(write(record, Buffer.alloc(byAvsc(type, record).length - 1), 0), -1)
    }
  }
})

test('every buffer that is too short is reported, for a full record and for one of nulls', () => {
  const buffer = Buffer.alloc(1 << 17)
  for (const { type, write } of schemas) {
    const full = fullValue(type) as Fields
    const nulls = (type as types.RecordType).fields
      .filter((field) => field.type.typeName === 'union:unwrapped')
      .map((field) => [field.name, null])
    for (const record of [full, { ...full, ...Object.fromEntries(nulls) }]) {
      const { length } = byAvsc(type, record)
      for (let short = 0; short < length; short++)
        assert.equal(write(record, buffer.subarray(0, short), 0), -1, `${short} of ${length}`)
    }
  }
})

test('an unpaired surrogate is written as U+FFFD, in short and long texts', () => {
  const { type, write } = recordSchema('membership')
  const buffer = Buffer.alloc(2_000)
  for (const text of ['\ud83d', `${'a'.repeat(100)}\ude00`]) {
    const end = write({ ...(fullValue(type) as object), userId: text }, buffer, 0)
    const { userId } = type.fromBuffer(buffer.subarray(0, end)) as { userId: string }
    assert.equal(userId, text.toWellFormed())
  }
})

test('a schema with a type that has no writer is refused, with the place of the type', () => {
  const typeOf = (field: unknown) =>
    avro.Type.forSchema({ type: 'record', name: 'R', fields: [{ name: 'f', type: field }] } as never, {
      wrapUnions: 'never',
    })
  assert.throws(() => compileWriter(typeOf({ type: 'map', values: 'int' })), /R\.f: .*map/)
  assert.throws(() => compileWriter(typeOf(['string', 'null'])), /R\.f: /)
  assert.throws(() => compileWriter(typeOf(['null', 'string', 'int'])), /R\.f: /)
  assert.throws(() => typeOf({ type: 'record', name: 'S', fields: [{ name: 'x)', type: 'int' }] }), /name/)
})
