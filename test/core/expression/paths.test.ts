import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalObject } from '../../../src/core/json/canonical-json.ts'
import { compileValue } from '../../../src/core/expression/call-expression.ts'
import { CallValues, ExpressionFault } from '../../../src/core/expression/call-values.ts'
import { Run } from '../../../src/core/expression/evaluation.ts'
import { compileBody } from '../../../src/core/shape/body-template.ts'
import { Unrenderable } from '../../../src/core/shape/text-template.ts'
import { earliestTimestamp, latestTimestamp } from '../../../src/core/timestamp.ts'
import { someCall } from '../../support/calls/calls.ts'

const keys = ['a', 'b', 'constructor', '__proto__', 'länge']
const written = fc.letrec<{ text: string }>((tie) => ({
  text: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom(
      '1',
      '-0',
      '1e400',
      '12345678901234567',
      '1234567890123456.5',
      '0.1',
      '1E2',
      'true',
      'null',
    ),
    fc.constantFrom(
      '"a"',
      '""',
      '"\\n"',
      '"\\ud83d\\ude00"',
      '"\ud800"',
      '"1234567890123456"',
      '01',
      '"',
      '"\t"',
    ),
    fc.array(tie('text'), { maxLength: 3 }).map((items) => `[${items.join()}]`),
    fc
      .tuple(
        fc.array(
          fc.tuple(
            fc.constantFrom(...keys.map((key) => `"${key}"`), '"\\u0061"', '"a\\\\"', 'a'),
            tie('text'),
          ),
          { maxLength: 4 },
        ),
        fc.constantFrom('', '', ' ', '\n'),
      )
      .map(
        ([members, space]) =>
          `{${members.map((member) => member.join(`${space}:`)).join(`${space},`)}${space}}`,
      ),
  ),
})).text

/** A path by its names, which is read where it lies, and the same by indexes, for which the map is parsed. */
const bothWays = (path: readonly string[], properties: string | null): [unknown, unknown] => {
  const valueOf = (text: string) => {
    const { expression } = compileValue(text)
    const value = expression!.evaluate(new Run(new CallValues({ ...someCall(), properties })))
    return value instanceof ExpressionFault ? { fault: value.reason, at: value.at !== null } : value
  }
  const indexes = path.map((key) => `[${JSON.stringify(key)}]`)
  return [valueOf(['call.properties', ...path].join('.')), valueOf(`call.properties${indexes.join('')}`)]
}

test('what keys lead to in a map is what reading the map gives, however it is written', () => {
  const names = fc.constantFrom('a', 'b', 'constructor', '__proto__')
  const paths = fc.array(names, { minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(paths, written, (path, text) => {
      for (const properties of [text, canonicalObject(text), null]) {
        const [lying, parsed] = bothWays(path, properties)
        assert.deepEqual(lying, parsed)
      }
    }),
    { numRuns: 3_000 },
  )
})

test('a template writes what keys lead to as it writes the value', () => {
  const names = fc.constantFrom('a', 'b', '__proto__')
  const paths = fc.array(names, { minLength: 1, maxLength: 2 })
  const rendered = (holes: readonly string[], properties: string | null) => {
    const { body } = compileBody(JSON.stringify(holes.map((hole) => `\${call.properties${hole}}`)))
    try {
      return body!.render(new Run(new CallValues({ ...someCall(), properties })))
    } catch (error) {
      assert.ok(error instanceof Unrenderable)
      return 'nothing'
    }
  }
  fc.assert(
    fc.property(fc.array(paths, { maxLength: 3 }), written, (several, text) => {
      const lying = several.map((path) => path.map((key) => `.${key}`).join(''))
      const parsed = several.map((path) => path.map((key) => `[${JSON.stringify(key)}]`).join(''))
      for (const properties of [text, canonicalObject(text), null])
        assert.equal(rendered(lying, properties), rendered(parsed, properties))
    }),
    { numRuns: 3_000 },
  )
})

test('a template writes the time of a call as it writes any other time', () => {
  const rendered = (hole: string, timestamp: number) =>
    compileBody(JSON.stringify({ at: `\${${hole}}` })).body!.render(
      new Run(new CallValues({ ...someCall(), timestamp })),
    )
  fc.assert(
    fc.property(fc.integer({ min: earliestTimestamp, max: latestTimestamp }), (timestamp) => {
      const expected = JSON.stringify({ at: new Date(timestamp).toISOString() })
      // The choice is evaluated.
      for (const hole of [
        'call.timestamp',
        'iso(call.timestamp)',
        'iso(true ? call.timestamp : call.timestamp)',
      ])
        assert.equal(rendered(hole, timestamp), expected, hole)
    }),
  )
})

for (const [what, properties] of [
  [
    'nested thousands deep, beside a number that no double holds',
    `{"b":${'['.repeat(5_000)}12345678901234567890${']'.repeat(5_000)},"a":1}`,
  ],
  ['longer than keys are listed of', JSON.stringify({ b: 'x'.repeat(70_000), a: { b: 1 } })],
  ['a long list', JSON.stringify({ a: Array.from({ length: 1_000 }, (_, index) => index) })],
  [
    'of many members',
    JSON.stringify({ ...Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`k${n}`, n])), a: 1 }),
  ],
  ['with a key twice', '{"a":{"b":1},"a":{"b":2}}'],
] as const)
  test(`a map is read as if it were parsed: ${what}`, () => {
    for (const path of [['a'], ['a', 'b']]) {
      const [lying, parsed] = bothWays(path, properties)
      assert.deepEqual(lying, parsed)
    }
  })

test('a fault stands at the key that leads nowhere', () => {
  const at = (text: string) => {
    const values = new CallValues({ ...someCall(), properties: '{"a":{"b":[1]}}' })
    return (compileValue(text).expression!.evaluate(new Run(values)) as ExpressionFault).at
  }
  assert.equal(at('call.properties.x.y.z'), at('call.properties.x'))
  assert.equal(at('call.properties.a.x.y'), at('call.properties.a.x'))
  assert.equal(at('call.properties.a.b.x.y'), at('call.properties.a.b.x'))
  assert.notEqual(at('call.properties.a.x'), at('call.properties.x'))
})
