import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { compileExpression, maxExpressionLength } from '../../../src/core/expression/call-expression.ts'
import { CallValues } from '../../../src/core/expression/call-values.ts'
import { someCall } from '../../support/calls/calls.ts'

const faultOf = (text: string) => compileExpression(text).fault
function evaluate(text: string, given: Partial<AnalyticsCall> = {}) {
  const { expression, fault } = compileExpression(text)
  assert.equal(fault, null, text)
  return expression!.evaluate(new CallValues(someCall(given)))
}

const order: Partial<AnalyticsCall> = {
  properties:
    '{"total":100,"id":12345678901234567,"tags":["new","b"],"n":{"x":null},"on":true,"__proto__":{"z":1}}',
  context: '{"country":"DE"}',
}

test('an expression reads every field of a call; absent maps are empty and other absent fields are null', () => {
  for (const text of [
    'call.properties.total >= 100 && call.context.country in ["DE","FR"]',
    'call.type == "track" && call.messageId == "m-1" && call.userId == "u-1"',
    'call.event == "Order Completed" && call.anonymousId == null && call.previousId == null',
    'call.groupId == null && call.name == null && call.category == null',
    '!has(call.traits.plan) && size(call.traits) == 0',
    'call.timestamp < timestamp("2026-01-02T03:04:06Z") && call.timestamp.getHours() == 3',
    'call.properties.total == 100 && call.properties.total == 100.0',
    // A double cannot hold it.
    'call.properties.id == 12345678901234567',
    'call.properties.tags.exists(tag, tag.startsWith("n")) && "b" in call.properties.tags',
    'call.properties.n.x == null && call.properties.on',
    '!has(call.properties.constructor) && call.properties.__proto__.z == 1',
  ])
    assert.equal(evaluate(text, order), true, text)
  assert.equal(evaluate('call.userId == null', { userId: '', anonymousId: 'a' }), true)
  assert.equal(evaluate('call.properties.total > 100', order), false)
})

test('an expression that does not compile is refused with its place and what is wrong', () => {
  const wrong: Record<string, RegExp> = {
    '': /^line 1, column 1: Unexpected token/,
    '1 +': /^line 1, column 4: Unexpected token/,
    'true &&\n  cal.type == "track"': /^line 2, column 3: Unknown variable: cal$/,
    'call.propertis.x == 1': /^line 1, column 6: No such key: propertis$/,
    'call.type == 1': /^line 1, column 1: no such overload: string == int$/,
    'call.type': /^it gives a value of type string, not true or false$/,
    'call.read("type") == "x"': /there is no read\(\) here/,
    'call.userId in [b"u"]': /^line 1, column 17: there are no bytes here, only texts$/,
    'int == string': /^line 1, column 1: there is no int here, only call$/,
  }
  for (const [text, message] of Object.entries(wrong)) assert.match(faultOf(text)!, message)
})

test('an expression that could take long, or grow, is refused', () => {
  const search = 'call.properties.a.exists(i, '
  for (const [text, message] of [
    ['call.event.matches("(a+)+$")', /there is no matches\(\) here/],
    ['call.properties.a.map(x, x + x) == []', /there is no map\(\) here/],
    ['cel.bind(x, "ab", x + x == "abab")', /there is no bind\(\) here/],
    ['call.event.split("") == []', /there is no split\(\) here/],
    [`${search}${search}i == 1))`, /exists cannot be used within all, exists, exists_one or filter/],
    [`${search}!(size(call.traits.b.filter(j, true)) == 1))`, /filter cannot be used within/],
    ['call.timestamp.getHours("Europe/Berlin") == 1', /getHours is in UTC and takes nothing/],
    [`${'('.repeat(60)}true${')'.repeat(60)}`, /maxDepth/],
    [`${'!'.repeat(600)}true`, /maxAstNodes|maxDepth/],
    [
      `call.event == "${'x'.repeat(maxExpressionLength)}"`,
      /it has 2016 characters, at most 2000 are allowed/,
    ],
  ] as const)
    assert.match(faultOf(text) ?? 'none', message, text)
  // One after another is linear.
  assert.equal(faultOf('call.properties.a.filter(i, i > 1).filter(i, i > 2).exists(i, i > 3)'), null)
})

test('what cannot be evaluated says where and why, and nothing of the call', () => {
  const reasonOf = (text: string, given: Partial<AnalyticsCall> = {}) => {
    const verdict = evaluate(text, { ...order, ...given })
    return typeof verdict === 'boolean' ? verdict : verdict.reason
  }
  assert.equal(reasonOf('call.properties.missing == 1'), 'no_such_key at line 1, column 17')
  assert.equal(reasonOf('call.context.country > 5'), 'no_such_overload at line 1, column 1')
  assert.equal(reasonOf('bool(call.context.country)'), 'bool_conversion_error at line 1, column 1')
  assert.equal(reasonOf('call.properties.total'), 'its value is neither true nor false')
  assert.equal(reasonOf('call.properties.total > 1', { properties: '{"total":' }), 'a value cannot be read')
  // A part that decides alone is enough.
  assert.equal(reasonOf('call.properties.missing == 1 || call.type == "track"'), true)
})

test('of a map with more than 64 KB lists are searched, but no keys are listed', () => {
  const properties = JSON.stringify({ tags: Array.from({ length: 20_000 }, (_, index) => `t${index}`) })
  const reasonOf = (text: string) => {
    const verdict = evaluate(text, { properties })
    return typeof verdict === 'boolean' ? verdict : verdict.reason
  }
  assert.equal(reasonOf('"t19999" in call.properties.tags'), true)
  assert.equal(reasonOf('call.properties.tags.exists(tag, tag == "t19999")'), true)
  assert.equal(reasonOf('size(call.properties) == 1'), 'too_many_keys at line 1, column 1')
  assert.equal(reasonOf('call.properties.exists(key, key == "tags")'), 'too_many_keys at line 1, column 6')
})

test('property: whatever the text, compiling it ends with an expression or one line', () => {
  const parts = fc.constantFrom(
    ...[
      'call',
      '.properties',
      '.x',
      '.exists(',
      'i',
      ',',
      ')',
      '(',
      '[',
      ']',
      '"a"',
      '1',
      '+',
      '&&',
      '!',
      '\n',
    ],
  )
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(parts, { maxLength: 12 }).map((all) => all.join('')),
      ),
      (text) => {
        const { expression, fault } = compileExpression(text)
        if (fault === null) expression!.evaluate(new CallValues(someCall(order)))
        else assert.equal(expression, null)
      },
    ),
  )
})
