import assert from 'node:assert/strict'
import { test } from 'node:test'
import { exampleCall } from '../../src/web/components/example-call.ts'

const field = (path: string, ...kinds: string[]) =>
  ({ path, calls: 1, kinds: kinds.map((kind) => ({ kind, calls: 1 })) }) as Parameters<
    typeof exampleCall
  >[1][number]

test('the example of an event has a value of the most frequent kind at each place that its calls have', () => {
  const fields = [
    field('context', 'object'),
    field('context.ip', 'string'),
    field('properties', 'object'),
    field('properties."a.b"', 'boolean', 'string'),
    field('properties.by_id', 'object'),
    field('properties.by_id.*', 'object'),
    field('properties.items', 'array'),
    field('properties.items[]', 'object'),
    field('properties.items[].price', 'number'),
    field('properties.items[].sku', 'string'),
    field('properties.total', 'integer'),
    field('traits.name', 'string'),
  ]
  assert.deepEqual(JSON.parse(exampleCall('Bought', fields)), {
    type: 'track',
    userId: 'postrider-test',
    event: 'Bought',
    properties: { 'a.b': true, by_id: {}, items: [{ price: 1.5, sku: 'text' }], total: 1 },
    context: { ip: 'text' },
  })
})

test('a path that names a prototype changes nothing but the example', () => {
  exampleCall('E', [
    field('properties.list', 'array'),
    field('properties.list.__proto__.own', 'string'),
    field('properties.__proto__.own', 'string'),
    field('properties.constructor.prototype.own', 'string'),
  ])
  assert.equal((Object.prototype as { own?: string }).own, undefined)
  assert.equal((Array.prototype as { own?: string }).own, undefined)
})
