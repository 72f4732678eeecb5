import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalObject } from '../../../src/core/json/canonical-json.ts'
import { parsedJson } from '../../support/json-reference.ts'

const again = (text: string): string => JSON.stringify(parsedJson(text))

/** Each with what it becomes. */
const table: [text: string, canonical: string][] = [
  [' \t\r\n{ "a" : [ 1 , 2 ] }\n', '{"a":[1,2]}'],
  ['{"total": 24.5, "currency": "EUR"}', '{"total":24.5,"currency":"EUR"}'],
  ['{"url":"https://example.com/?a=1\\u0026b=\\u003c"}', '{"url":"https://example.com/?a=1&b=<"}'],
  ['{"a":"\\/","b":"\\u0041\\u00e9\\ud83d\\ude00"}', '{"a":"/","b":"Aé😀"}'],
  ['{"a":"\\uD800 \\uDC00","b":"\\u000A\\u001F"}', '{"a":"\\ud800 \\udc00","b":"\\n\\u001f"}'],
  ['{"a":"\ud800"}', '{"a":"\\ud800"}'],
  ['{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'],
  ['{"":1,"":2}', '{"":2}'],
  ['{"a":1,"\\u0061":2}', '{"a":2}'],
  ['{"b":1,"2":2,"a":{"10":1,"9":2},"1":3}', '{"1":3,"2":2,"b":1,"a":{"9":2,"10":1}}'],
  ['{"__proto__":{"a": 1},"constructor":2}', '{"__proto__":{"a":1},"constructor":2}'],
  ['{"a":3.50,"b":1.0,"c":1e3,"d":-0,"e":-0.0e5,"f":1E-7}', '{"a":3.5,"b":1,"c":1000,"d":0,"e":0,"f":1e-7}'],
  ['{"a":0.0000001,"b":1e21,"c":100e19}', '{"a":1e-7,"b":1e+21,"c":1e+21}'],
]

test('white space, escapes, duplicate keys, the order of integer keys and number spellings are made canonical', () => {
  for (const [text, canonical] of table) {
    assert.equal(canonicalObject(text), canonical)
    assert.equal(again(text), canonical)
  }
})

const canonicalAlready = [
  '{}',
  '{"a":{},"b":[],"c":[[{}]],"d":null,"e":true,"f":false}',
  '{"a":0,"b":-1.5,"c":0.000001,"d":1e-7,"e":1e+21,"f":123456789012345,"g":0.1,"h":5e-324}',
  '{"a":"\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\u007f\u2028é😀/","\\"":1}',
  '{"a":"\\ud800"}',
  '{"1":1,"2":2,"a":3,"01":4,"4294967295":5,"-1":6}',
  '{"same":{"same":[{"same":1},{"same":1}]},"emas":1}',
  JSON.stringify(Object.fromEntries(Array.from({ length: 500 }, (_, key) => [`key ${key}`, key]))),
]

test('canonical text stays unchanged', () => {
  for (const text of canonicalAlready) {
    assert.equal(canonicalObject(text), text)
    assert.equal(again(text), text)
  }
})

const inexact = [
  '12345678901234567890',
  '-9007199254740993',
  '1e400',
  '-1E400',
  '1e-400',
  '0.10000000000000000001',
  '3.14159265358979323846',
  '123456789.123456789123456789e5',
  `1${'0'.repeat(400)}`,
]

test('a number that a double cannot represent keeps its text while the rest is rewritten', () => {
  for (const number of inexact) {
    assert.equal(canonicalObject(`{"n":${number}}`), `{"n":${number}}`)
    assert.equal(
      canonicalObject(`{ "b": 1.50, "n": [${number}, {"m": ${number}}], "1": "\\u0026", "b": -0 }`),
      `{"1":"&","b":0,"n":[${number},{"m":${number}}]}`,
    )
  }
})

test('text that is not exactly one JSON object is rejected', () => {
  for (const text of [
    '',
    ' ',
    '[]',
    '[{}]',
    'null',
    '1',
    '"{}"',
    '{}{}',
    '{},"userId":"x"',
    '{"a":1}}',
    '{"a":1',
  ])
    assert.equal(canonicalObject(text), null, text)
  for (const text of [
    '{"a":01}',
    '{"a":1.}',
    '{"a":-}',
    '{"a":"\n"}',
    '{"a":"\\x"}',
    '{"a":"\\u00"}',
    '\ufeff{}',
  ])
    assert.equal(canonicalObject(text), null, text)
})

test('nesting of a hundred thousand levels loses nothing, and one of a thousand levels is rewritten', () => {
  const nested = (depth: number, space: string) => '{"a":['.repeat(depth) + space + ']}'.repeat(depth)
  const [canonical, spaced] = [nested(100_000, ''), nested(100_000, ' ')]
  // No assert.equal: its message would show these.
  assert.ok(canonicalObject(canonical) === canonical)
  // How deep JSON.stringify goes depends on the Node.
  const written = canonicalObject(spaced)
  assert.ok(written === spaced || written === canonical)
  assert.ok(canonicalObject(nested(500, ' ')) === nested(500, ''))
  assert.ok(canonicalObject(`${canonical}}`) === null)
})

test('an object with a hundred thousand keys, some duplicate, becomes what JSON.stringify writes', () => {
  const keys = Array.from({ length: 100_000 }, (_, key) => `"key ${key % 99_999}":${key}`)
  assert.equal(canonicalObject(`{${keys.join()}}`), again(`{${keys.join()}}`))
})

// Values in any spelling: space, escapes, keys that come again, digits and zeros.
// Rare, so that some texts have none at all.
const space = fc.oneof({ weight: 20, arbitrary: fc.constant('') }, fc.constantFrom(' ', '\n', '\t \r\n'))
const hex = (code: number, isUpper: boolean): string => {
  const digits = code.toString(16).padStart(4, '0')
  return `\\u${isUpper ? digits.toUpperCase() : digits}`
}
const units = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '',
    'a',
    'b',
    '1',
    '2',
    '10',
    '01',
    '4294967294',
    '4294967295',
    '__proto__',
    '/',
    '\ud800',
    '\udc00',
  ),
)
const spelledAs = (text: string, choices: Iterator<number>): string => {
  const written = [...Array(text.length).keys()].map((at) => {
    const code = text.charCodeAt(at)
    const choice = choices.next().value as number
    if (choice < 2) return hex(code, choice === 1)
    if (text[at] === '/' && choice < 7) return '\\/'
    const mustEscape = code < 0x20 || text[at] === '"' || text[at] === '\\'
    return mustEscape ? JSON.stringify(text[at]).slice(1, -1) : text[at]!
  })
  return `"${written.join('')}"`
}
const spelledString = fc
  .tuple(units, fc.infiniteStream(fc.nat(11)))
  .map(([text, choices]) => spelledAs(text, choices))
const spelledKey = fc
  .tuple(
    // Few, so that keys come twice.
    fc.oneof(fc.constantFrom('a', 'b', 'c'), units),
    fc.infiniteStream(fc.nat(11)),
  )
  .map(([text, choices]) => spelledAs(text, choices))
const spelledNumber = fc.oneof(
  fc
    .double({ noNaN: true, noDefaultInfinity: true })
    .chain((value) => fc.constantFrom(...spellingsOf(value))),
  fc.integer({ min: -100_000, max: 100_000 }).chain((value) => fc.constantFrom(...spellingsOf(value / 100))),
  fc.integer().chain((value) => fc.constantFrom(...spellingsOf(value))),
  fc.constantFrom('0', '-0', '0.0', '-0e7', '0E-9', '1E2', '100e-2'),
)
/** Of the very same double, as JSON allows them. */
function spellingsOf(value: number): string[] {
  const plain = String(value)
  const more = plain.includes('e') ? [plain.replace('e', 'E')] : [`${plain}e0`, `${plain}E+00`]
  if (!plain.includes('e')) more.push(plain.includes('.') ? `${plain}0` : `${plain}.0`)
  return [plain, ...more, value.toExponential(), ...(value === 0 ? ['-0'] : [])]
}
const scalar = fc.oneof(spelledString, spelledNumber, fc.constantFrom('true', 'false', 'null'))
const { object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalar,
    tie('object'),
    fc
      .tuple(space, fc.array(fc.tuple(tie('value'), space), { maxLength: 4 }))
      .map(([before, items]) => `[${before}${items.map(([item, after]) => item + after).join()}]`),
  ),
  object: fc
    .tuple(space, fc.array(fc.tuple(space, spelledKey, space, space, tie('value'), space), { maxLength: 6 }))
    .map(
      ([before, members]) =>
        `{${members.length === 0 ? before : ''}${members.map(([a, key, b, c, value, d]) => `${a}${key}${b}:${c}${value}${d}`).join()}}`,
    ),
}))

test('property: an object in any spelling becomes JSON.stringify(JSON.parse(text))', () => {
  fc.assert(
    fc.property(object, space, space, (text, before, after) => {
      const given = `${before}${text}${after}`
      const canonical = canonicalObject(given)
      assert.equal(canonical, again(given), JSON.stringify(given))
      assert.equal(canonicalObject(canonical!), canonical)
    }),
    { numRuns: 1_500 },
  )
})

test('property: numbers that a double cannot represent keep their text while the rest is rewritten', () => {
  const mark = '8888888888'
  fc.assert(
    fc.property(object, fc.constantFrom(...inexact), fc.boolean(), (text, number, isFirst) => {
      fc.pre(!text.includes(mark))
      const given = isFirst ? `{"n": ${mark}, "rest": ${text}}` : `{"all": [${text}, ${mark}]}`
      assert.equal(canonicalObject(given.replace(mark, number)), again(given).replace(mark, number))
    }),
    { numRuns: 600 },
  )
})

test('property: valid, damaged and random text is judged to be an object or not as JSON.parse judges it', () => {
  const damaged = fc
    .tuple(object, fc.nat(), fc.nat(3), fc.constantFrom(...'{}[]",:\\0.eE+-tfn \n\u0001u'))
    .map(([text, where, cut, char]) => {
      const at = where % (text.length + 1)
      return text.slice(0, at) + char + text.slice(at + cut)
    })
  fc.assert(
    fc.property(fc.oneof(damaged, fc.json(), fc.string()), (text) => {
      let expected: string | null = null
      try {
        const value = parsedJson(text)
        if (typeof value === 'object' && value !== null && !Array.isArray(value))
          expected = JSON.stringify(value)
      } catch {
        // No JSON.
      }
      const canonical = canonicalObject(text)
      assert.equal(canonical === null, expected === null, JSON.stringify(text))
      // Damage can make a number that no double holds, by putting digits together.
      if (canonical !== null && !/\d{15}|[eE]/.test(text)) assert.equal(canonical, expected)
    }),
    { numRuns: 1_500 },
  )
})
