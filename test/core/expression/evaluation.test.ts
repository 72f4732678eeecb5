// What a sender can do to a condition: values that would take long, or would be kept.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Environment } from '@marcbachmann/cel-js'
import fc from 'fast-check'
import { compileExpression } from '../../../src/core/expression/call-expression.ts'
import { callFields, CallValues, type ReadableCall } from '../../../src/core/expression/call-values.ts'
import { maxSteps } from '../../../src/core/expression/evaluation.ts'
import { maxComparedDepth } from '../../../src/core/expression/operators.ts'
import { someCall } from '../../support/calls/calls.ts'

const tooManySteps = `it would take more than ${maxSteps} steps`

function compiled(text: string) {
  const { expression, fault } = compileExpression(text)
  assert.equal(fault, null, text.slice(0, 100))
  return expression!
}

function verdictOf(text: string, call: ReadableCall): boolean | string {
  const verdict = compiled(text).evaluate(new CallValues(call))
  return typeof verdict === 'boolean' ? verdict : verdict.reason
}

const nested = (depth: number, open: string, close: string, inner = '1') =>
  open.repeat(depth) + inner + close.repeat(depth)
const lists = (depth: number) => nested(depth, '[', ']')
const maps = (depth: number) => nested(depth, '{"a":', '}')
const mixed = (depth: number, seed = 1) => {
  let [text, end] = ['', '']
  for (let level = 0; level < depth; level++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
    const isList = seed & 4_096
    text += isList ? '[' : '{"a":'
    end = (isList ? ']' : '}') + end
  }
  return `${text}1${end}`
}
const numbers = (length: number) => JSON.stringify(Array.from({ length }, (_, index) => index))
const within = (value: string, other = value) => ({ properties: `{"x":${value},"y":${other}}` })
const textOf = (value: string, other = value) => within(JSON.stringify(value), JSON.stringify(other))
/** In an expression at most 2,000 characters long. */
const often = (text: string, operator = ' && ') =>
  Array.from({ length: Math.floor(1_900 / (text.length + operator.length)) }, () => text).join(operator)

const [x, y] = ['call.properties.x', 'call.properties.y']
const megabyte = 1_000_000

/** Each took seconds, or the memory, or would with the library's evaluation. */
const hostile: [name: string, expression: string, Partial<ReadableCall>, verdict: boolean | RegExp][] = [
  ['lists and maps in each other, compared', `${x} >= 100`, within(mixed(4_000)), /^no_such_overload/],
  ['maps in each other, compared', `${x} >= 100`, within(maps(3_000)), /^no_such_overload/],
  ['maps in each other, in a list', `${x} in ["DE"]`, within(maps(3_000)), false],
  ['maps in each other, with a number', `${x} == 1`, within(maps(3_000)), false],
  ['maps in each other, of a function', `size(${x}) == 1`, within(maps(3_000)), true],
  ['maps in each other, of a method', `${x}.startsWith("a")`, within(maps(3_000)), /^no_matching_overload/],
  ['two deep maps', `${x} == ${y}`, within(maps(3_000)), /^nested_too_deep/],
  ['two deep lists', `${x} == ${y}`, within(lists(8_000)), /^nested_too_deep/],
  ['a deep list among others', `${x} in [${y}]`, within(lists(8_000)), /^nested_too_deep/],
  ['beside deep values', `${x} == 1`, within('1', mixed(4_000)), true],
  ['a megabyte of lists in each other', `${x} == 1`, within('1', lists(megabyte / 2)), true],
  [
    'digits for a duration',
    `duration(${x}) < duration("1h")`,
    textOf('1'.repeat(4_000)),
    /^invalid_duration/,
  ],
  ['dots for a duration', `duration(${x}) < duration("1h")`, textOf('.'.repeat(4_000)), /^invalid_duration/],
  ['digits for a number', `int(${x}) == 1`, textOf('1'.repeat(megabyte)), /^int_conversion_error/],
  ['spaces for a number', `double(${x}) == 1.0`, textOf(' '.repeat(megabyte)), /^double_conversion_error/],
  [
    'a long time',
    `timestamp(${x}) < call.timestamp`,
    textOf(`2026${' '.repeat(megabyte)}`),
    /^invalid_timestamp/,
  ],
  ['another list in a search', `${x}.all(i, !(99 in ${y}))`, within('[1,2]'.repeat(1), '[1,2]'), true],
  [
    'a long other list in a search',
    `${x}.all(i, !(-1.0 in ${y}))`,
    within(numbers(10_000)),
    new RegExp(tooManySteps),
  ],
  ['many of them', often(`${x}.all(i, !(-1.0 in ${y}))`), within(numbers(6_000)), new RegExp(tooManySteps)],
  ['two lists joined in a search', `${x}.all(i, size(${x} + ${x}) > 1)`, within(numbers(10_000)), /steps$/],
  ['lists joined', `size(${often(x, ' + ')}) > 1`, within(numbers(10_000)), /steps$/],
  ['texts joined', `size(${often(x, ' + ')}) > 1`, textOf('a'.repeat(megabyte)), /steps$/],
  [
    'the size of a text in a search',
    `${y}.all(i, size(${x}) > 1)`,
    within(`"${'a'.repeat(30_000)}"`, numbers(4_000)),
    /steps$/,
  ],
  [
    'a text searched for a period',
    `${x}.contains(${y})`,
    textOf('a'.repeat(megabyte / 2), `${'a'.repeat(5_000)}b${'a'.repeat(5_000)}`),
    false,
  ],
  [
    'a text searched for its half',
    `${x}.contains(${y})`,
    textOf('a'.repeat(megabyte), `${'a'.repeat(500_000)}b`),
    false,
  ],
  [
    'a text searched again and again',
    often(`!${x}.contains(${y})`),
    textOf('a'.repeat(200_000), `${'a'.repeat(1_000)}b`),
    /steps$/,
  ],
  [
    'contains in a search',
    `${y}.all(i, !${x}.contains("aaab"))`,
    within(`"${'a'.repeat(30_000)}"`, numbers(4_000)),
    /steps$/,
  ],
  ['texts compared', often(`${x} <= ${y}`), textOf('a'.repeat(megabyte)), /steps$/],
  ['equal texts', often(`${x} == ${y}`), textOf('a'.repeat(megabyte)), /steps$/],
  ['capital letters', `${x}.upperAscii() == "a"`, textOf('ﬃ'.repeat(megabyte)), /steps$/],
  ['small letters', `${x}.lowerAscii() == "a"`, textOf('İ'.repeat(90_000)), false],
  ['trimmed texts', often(`${x}.trim() == "a"`, ' || '), textOf(' '.repeat(megabyte)), /steps$/],
  ['a text as a key', often(`${x} in {"a": 1}`, ' || '), textOf('a'.repeat(megabyte)), /steps$/],
  [
    'an element of the wrong type each',
    `${x}.exists(i, i.startsWith("n"))`,
    within(numbers(10_000)),
    /^no_matching_overload/,
  ],
  ['errors that nothing decides', often(`!${x}.all(i, !i.contains("a"))`), within(numbers(5_000)), /steps$/],
  [
    'filters of filters',
    `size(${x}${'.filter(i, i >= 0)'.repeat(20)}) == 0`,
    within(numbers(10_000)),
    /steps$/,
  ],
  [
    'a megabyte of keys',
    `size(${x}) == 1`,
    within(JSON.stringify(Object.fromEntries(Array.from({ length: 80_000 }, (_, key) => [`k${key}`, 1])))),
    /^too_many_keys/,
  ],
  [
    'a megabyte of keys, compared',
    `${x} == ${y}`,
    within(JSON.stringify(Object.fromEntries(Array.from({ length: 80_000 }, (_, key) => [`k${key}`, 1])))),
    /^too_many_keys/,
  ],
  [
    'whole numbers beyond doubles',
    `${x}.all(i, i > 0)`,
    within(`[${'12345678901234567,'.repeat(3_000)}1]`),
    true,
  ],
  ['no JSON', often(`${x} == 1`, ' || '), { properties: `${lists(30_000)}]` }, /^a value cannot be read$/],
]

/** The CPU time of this thread, in ms; the least of three, for a collection of garbage may fall into one. */
function cpuMs(work: () => void): number {
  let least = Infinity
  for (let round = 0; round < 3; round++) {
    const before = process.threadCpuUsage()
    work()
    const { user, system } = process.threadCpuUsage(before)
    least = Math.min(least, (user + system) / 1_000)
  }
  return least
}

for (const [name, text, given, expected] of hostile) {
  test(`no call makes an evaluation long: ${name}`, (t) => {
    const call = someCall(given)
    const verdict = verdictOf(text, call)
    if (expected instanceof RegExp) assert.match(String(verdict), expected)
    else assert.equal(verdict, expected)
    const expression = compiled(text)
    const values = new CallValues(call)
    // What was parsed once is not parsed again.
    expression.evaluate(values)
    const ms = cpuMs(() => expression.evaluate(values))
    t.diagnostic(`${ms.toFixed(1)} ms`)
    assert.ok(ms < 50, `${ms} ms`)
  })
}

test('values are compared down to ten lists and maps within each other', () => {
  assert.equal(verdictOf(`${x} == ${y}`, someCall(within(lists(maxComparedDepth)))), true)
  assert.match(
    String(verdictOf(`${x} == ${y}`, someCall(within(lists(maxComparedDepth + 1))))),
    /^nested_too_deep at line 1, column 1$/,
  )
})

test('what is counted leaves honest calls alone: a search of ten thousand elements, each compared twice', () => {
  const call = someCall(within(numbers(10_000)))
  assert.equal(verdictOf(`${x}.all(i, i >= 0 && i < 10000)`, call), true)
})

test('running out of steps is no fault that another part of the condition can cover', () => {
  const call = someCall(within(numbers(10_000)))
  const long = `${x}.all(i, !(-1.0 in ${y}))`
  assert.equal(verdictOf(`${long} || true`, call), tooManySteps)
  assert.equal(verdictOf(`!(${long} && false)`, call), tooManySteps)
})

test('30,000 calls of random shapes leave nothing behind', (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const expressions = [
    'call.properties.total >= 100 && call.context.country in ["DE", "FR"]',
    'call.properties.total == call.traits || size(call.properties) > 3 || call.properties.total.size() > 1',
    'call.properties.exists(key, key in ["a"]) || !call.properties.total',
  ].map(compiled)
  let seed = 1
  const evaluateSome = (count: number) => {
    for (let n = 0; n < count; n++) {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      const call = someCall({ properties: `{"total":${mixed(1 + (seed % 40), seed)}}` })
      const values = new CallValues(call)
      for (const expression of expressions) expression.evaluate(values)
    }
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = evaluateSome(2_000)
  const after = evaluateSome(30_000)
  const kilobytes = Math.round((after - before) / 1_024)
  t.diagnostic(`${kilobytes} KB`)
  assert.ok(kilobytes < 700, `${kilobytes} KB are kept`)
})

const library = new Environment({ limits: { maxAstNodes: 500, maxDepth: 50 } })
  .registerType('Call', { fields: callFields })
  .registerVariable('call', 'Call')

/** Expressions of each type, three operators deep. */
const { bool } = fc.letrec<Record<'bool' | 'number' | 'text' | 'list' | 'any', string>>((tie) => {
  const pick = (...all: string[]) => fc.constantFrom(...all)
  const two = (left: string, operators: string[], right: string) =>
    fc
      .tuple(tie(left as 'any'), pick(...operators), tie(right as 'any'))
      .map(([one, operator, other]) => `(${one} ${operator} ${other})`)
  const oneOf = (leaf: fc.Arbitrary<string>, ...nodes: fc.Arbitrary<string>[]) =>
    fc.oneof({ maxDepth: 3, depthSize: 'small' }, leaf, ...nodes)
  const searched = fc
    .tuple(
      pick('all', 'exists', 'exists_one'),
      fc.oneof(tie('list'), pick('call.properties.o', 'call.properties')),
      pick('i == "a"', 'i > 1.0', 'size(i) > 0', 'i', 'i in ["b"]', 'i == call.properties.n'),
    )
    .map(([search, list, condition]) => `${list}.${search}(i, ${condition})`)
  return {
    bool: oneOf(
      pick('true', 'false', 'call.properties.on', 'has(call.properties.o.a)', 'has(call.properties.z)'),
      two('any', ['==', '!='], 'any'),
      two('number', ['<', '<=', '>', '>=', '==', '!='], 'number'),
      two('text', ['<', '<=', '>', '>=', '=='], 'text'),
      two('bool', ['&&', '||', '==', '<'], 'bool'),
      two('any', ['in'], 'list'),
      two('text', ['in'], 'any'),
      searched,
      tie('bool').map((one) => `!${one}`),
      fc.tuple(tie('bool'), tie('bool'), tie('bool')).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      fc
        .tuple(tie('text'), pick('startsWith', 'endsWith', 'contains'), tie('text'))
        .map(([a, method, b]) => `${a}.${method}(${b})`),
    ),
    number: oneOf(
      pick('1', '2.5', '-3', '0', '9007199254740993', 'call.properties.n', 'call.properties.id', '0.0'),
      two('number', ['+', '-', '*', '/', '%'], 'number'),
      pick('size(call.properties)', 'size(call.properties.l)', 'call.properties.s.size()', 'size("ä😀")'),
      pick('call.timestamp.getHours()', 'call.timestamp.getDayOfWeek()', 'call.timestamp.getMonth()'),
      pick('duration("1h30m").getMinutes()', 'duration("-1.5s").getSeconds()'),
      pick('int("12")', 'int(2.9)', 'int(call.properties.n)', 'double("1e3")', 'double(3)', 'int("x")'),
    ),
    text: oneOf(
      pick('"a"', '"B "', '"é"', '""', 'call.properties.s', 'call.event', 'call.userId', 'call.name'),
      two('text', ['+'], 'text'),
      fc
        .tuple(tie('text'), pick('lowerAscii', 'upperAscii', 'trim'))
        .map(([text, method]) => `${text}.${method}()`),
      tie('number').map((number) => `string(${number})`),
    ),
    list: oneOf(
      pick('[1, 2]', '["a", "b"]', '[]', 'call.properties.l', 'call.properties.m'),
      two('list', ['+'], 'list'),
      tie('list').map((list) => `${list}.filter(i, i != "a")`),
    ),
    any: oneOf(
      pick(
        'null',
        'call.properties',
        'call.traits',
        '{"a": 1}',
        'call.properties.l[0]',
        'call.properties["s"]',
      ),
      tie('bool'),
      tie('number'),
      tie('text'),
      tie('list'),
    ),
  }
})

test('property: where the library says true or false of a call, so does this', (t) => {
  const properties = {
    n: 2.5,
    id: 3,
    s: 'aB',
    on: true,
    l: ['a', 'b'],
    m: [1, 2.5, 3],
    o: { a: null, b: [{ c: 1 }] },
  }
  const call = someCall({ properties: JSON.stringify(properties) })
  const values = {
    ...call,
    timestamp: new Date(call.timestamp),
    properties,
    traits: {},
    context: {},
  }
  let agreed = 0
  fc.assert(
    fc.property(bool, (text) => {
      const { expression } = compileExpression(text)
      if (expression === null) return
      let theirs: unknown
      try {
        theirs = library.evaluate(text, { call: values })
      } catch {
        return
      }
      if (typeof theirs !== 'boolean') return
      agreed++
      const ours = expression.evaluate(new CallValues(call))
      assert.equal(ours, theirs, `${text}: ${JSON.stringify(ours)}`)
    }),
    { numRuns: 2_000 },
  )
  t.diagnostic(`${agreed} of them`)
  assert.ok(agreed > 200)
})

test('a time without a zone is in UTC, whatever the zone of the process', (t) => {
  const { TZ } = process.env
  t.after(() => {
    if (TZ === undefined) delete process.env.TZ
    else process.env.TZ = TZ
  })
  const call = someCall({ properties: '{"x":"2026-07-01T10:00:00.123456"}' })
  for (const zone of ['America/New_York', 'Asia/Tokyo', 'UTC']) {
    process.env.TZ = zone
    const time = (text: string) => verdictOf(`timestamp(call.properties.x) == timestamp("${text}")`, call)
    assert.deepEqual(
      [time('2026-07-01T10:00:00.123Z'), time('2026-07-01T12:00:00.123+02:00')],
      [true, true],
      zone,
    )
  }
  const words = someCall({ properties: '{"x":"January 1, 2026 10:00:00"}' })
  assert.match(
    String(verdictOf('timestamp(call.properties.x) < call.timestamp', words)),
    /^invalid_timestamp/,
  )
})
