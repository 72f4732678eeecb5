import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { renderBody } from '../../../src/core/call/body.ts'
import { checkCall } from '../../../src/core/call/check-call.ts'
import { dropFaults, redacted, redactionOf } from '../../../src/core/call/redaction.ts'
import { pathKeys } from '../../../src/core/json/drop-paths.ts'
import { someCall } from '../../support/calls/calls.ts'
import { parsedJson } from '../../support/json-reference.ts'

const left = (paths: string[], given: Partial<AnalyticsCall>): AnalyticsCall =>
  redacted(someCall(given), redactionOf(paths)!)

test('paths are keys with dots between them; a key with a dot is in double quotes', () => {
  assert.deepEqual(pathKeys('context.ip'), ['context', 'ip'])
  assert.deepEqual(pathKeys('properties."a.b"."c\\"\\u0064".e f'), ['properties', 'a.b', 'c"d', 'e f'])
  assert.deepEqual(pathKeys('traits.""'), ['traits', ''])
  for (const path of ['', '.', 'a.', '.a', 'a..b', '"a', '"a"b', 'a"b', 'a. b', '"\\x"'])
    assert.equal(pathKeys(path), null, path)
})

test('what a path names is left out and all else keeps its spelling, down to numbers that a double cannot hold', () => {
  const context = '{"ip":"192.0.2.1","n":12345678901234567890,"device":{"id":"x","os":"y"},"a":1.5}'
  assert.equal(
    left(['context.ip', 'context.device.id'], { context }).context,
    '{"n":12345678901234567890,"device":{"os":"y"},"a":1.5}',
  )
  assert.equal(left(['context.absent', 'context.ip.deeper'], { context }).context, context)
  assert.equal(left(['context'], { context }).context, null)
  assert.equal(left(['context.ip', 'context'], { context }).context, null)
  const { anonymousId, name, category } = left(['anonymousId', 'name', 'category'], {
    anonymousId: 'a',
    name: 'n',
    category: 'c',
  })
  assert.deepEqual([anonymousId, name, category], [null, null, null])
})

test('what is nested too deep to be made canonical is left out of all the same, with space around it', () => {
  const deep = '['.repeat(16_000) + ']'.repeat(16_000)
  const { call } = checkCall(someCall({ context: ` { "deep": ${deep}, "ip": "192.0.2.1" }\n` }))
  assert(call!.context!.startsWith(' '))
  assert.equal(left(['context.ip'], { context: call!.context }).context, `{"deep": ${deep}}`)
})

test('a path through an array goes through each of its elements', () => {
  const properties = '{"items":[{"sku":1,"note":"a"},[{"note":"b","q":2}],"note",{"note":{}}],"note":3}'
  assert.equal(
    left(['properties.items.note'], { properties }).properties,
    '{"items":[{"sku":1},[{"q":2}],"note",{}],"note":3}',
  )
  const deep = `{"a":${'['.repeat(30)}{"b":1}${']'.repeat(30)}}`
  assert.equal(
    left(['properties.a.b'], { properties: deep }).properties,
    `{"a":${'['.repeat(20)}[]${']'.repeat(20)}}`,
  )
})

test('a delete has nothing to drop, and an identify keeps whose it is', () => {
  const call = someCall({ type: 'delete', context: '{"ip":1}' })
  assert.equal(redacted(call, redactionOf(['context'])!), call)
  const identify = left(['traits.email'], { type: 'identify', traits: '{"email":"a@b","plan":"pro"}' })
  assert.match(renderBody(identify), /"userId":"u-1".*"traits":\{"plan":"pro"\},.*"messageId":"m-1"/)
})

test('wrong paths are named, however many there are', () => {
  assert.deepEqual(dropFaults(['context.ip', 'traits."a.b"', 'name']), [])
  const faults = dropFaults(['userId', 'type', '', 'traits."a', 'name.x', `context.${'k.'.repeat(30)}k`])
  assert.equal(faults.length, 6)
  assert.match(dropFaults([]).join(), /at least one path/)
  assert.match(
    dropFaults(Array.from({ length: 51 }, (_, index) => `traits.t${index}`)).join(),
    /51 paths are given/,
  )
  assert.match(dropFaults(['traits.' + 'x'.repeat(500)]).join(), /507 characters long/)
})

/** As anybody would write it, on parsed JSON. */
function modelDrop(value: unknown, keys: readonly string[]): void {
  if (Array.isArray(value)) {
    for (const element of value) modelDrop(element, keys)
  } else if (typeof value === 'object' && value !== null) {
    const [key, ...below] = keys as [string, ...string[]]
    if (!Object.hasOwn(value, key)) return
    const object = value as Record<string, unknown>
    if (below.length === 0) delete object[key]
    else modelDrop(object[key], below)
  }
}

test('property: the body without the paths is the whole body parsed, cut and stringified again', () => {
  const key = fc.constantFrom('a', 'b', 'a.b', '', '"', '1', 'ключ', '\u0001')
  const { map } = fc.letrec<{ value: unknown; map: object }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.oneof(
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true }),
        fc.string(),
        fc.constant(null),
      ),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('map'),
    ),
    map: fc.dictionary(key, tie('value'), { maxKeys: 4 }),
  }))
  const path = fc.tuple(fc.constantFrom('properties', 'context'), fc.array(key, { maxLength: 3 }))
  const space = fc.constantFrom(undefined, 1)
  fc.assert(
    fc.property(
      map,
      map,
      fc.array(path, { minLength: 1, maxLength: 5 }),
      space,
      (properties, context, paths, by) => {
        const { call } = checkCall(
          someCall({
            properties: JSON.stringify(properties, null, by),
            context: JSON.stringify(context, null, by),
          }),
        )
        const model = parsedJson(renderBody(call!)) as Record<string, unknown>
        for (const [field, keys] of paths) {
          if (keys.length === 0) model[field] = {}
          else modelDrop(model[field], keys)
        }
        const texts = paths.map(([field, keys]) =>
          [field, ...keys.map((part) => JSON.stringify(part))].join('.'),
        )
        assert.equal(renderBody(redacted(call!, redactionOf(texts)!)), JSON.stringify(model))
      },
    ),
    { numRuns: 500 },
  )
})
