// What other producers and consumers rely on in schemas/: versions can follow each other.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Type } from 'avsc'
import { callTypes, type AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { deadLetterReasons } from '../../../src/core/delivery/delivery.ts'
import { deliveryEventTypes } from '../../../src/core/ledger/delivery-event.ts'
import { outcomeKinds } from '../../../src/core/delivery/outcome.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { recordTopics } from '../../../src/adapters/schema-registry/subjects.ts'
import { someCall } from '../../support/calls/calls.ts'

interface Schema {
  type: string
  name: string
  namespace?: string
  doc?: string
  default?: unknown
  symbols?: string[]
  fields?: { name: string; type: unknown; doc?: string; default?: unknown }[]
  items?: unknown
}

const folder = new URL('../../../schemas/', import.meta.url)
const files = readdirSync(folder)
const schemas = files.map((file) => JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Schema)

function* named(type: unknown): Generator<Schema> {
  if (Array.isArray(type)) for (const branch of type) yield* named(branch)
  else if (typeof type === 'object' && type !== null) {
    const schema = type as Schema
    if (schema.type === 'record' || schema.type === 'enum') yield schema
    for (const field of schema.fields ?? []) yield* named(field.type)
    if (schema.items !== undefined) yield* named(schema.items)
  }
}

test('there is a schema for the records of each topic, all in one namespace', () => {
  assert.deepEqual(files.sort(), [
    'analytics-call.avsc',
    'dead-letter.avsc',
    'delivery-event.avsc',
    'erasure.avsc',
    'membership.avsc',
    'retry-delivery.avsc',
    'settings-event.avsc',
    'suppression.avsc',
  ])
  for (const { namespace } of schemas) assert.equal(namespace, 'postrider')
  assert.equal(
    new Set(
      recordTopics({ topicPrefix: '', retryTiers: [{ name: '1s', delayMs: 1_000 }] }).map(
        ([, record]) => record,
      ),
    ).size,
    files.length,
  )
})

test('every record, field and enum has documentation; nullable fields default to null and enums to unknown', () => {
  for (const schema of schemas)
    for (const type of named(schema)) {
      assert.ok(type.doc, type.name)
      if (type.type === 'enum') {
        assert.equal(type.default, 'unknown', type.name)
        assert.equal(type.symbols![0], 'unknown', type.name)
      }
      for (const field of type.fields ?? []) {
        assert.ok(field.doc, `${type.name}.${field.name}`)
        if (!Array.isArray(field.type)) continue
        assert.equal(field.type[0], 'null', `${type.name}.${field.name}`)
        assert.equal(field.default, null, `${type.name}.${field.name}`)
      }
    }
})

test('the closed sets of the code match those of the schemas', () => {
  const sets: Record<string, readonly string[]> = {
    CallType: callTypes,
    OutcomeKind: outcomeKinds,
    DeadLetterReason: deadLetterReasons,
    DeliveryEventType: deliveryEventTypes,
  }
  const seen = new Set<string>()
  for (const schema of schemas)
    for (const { type, name, symbols } of named(schema)) {
      if (type !== 'enum') continue
      seen.add(name)
      assert.deepEqual(symbols, ['unknown', ...sets[name]!], name)
    }
  assert.deepEqual([...seen].sort(), Object.keys(sets).sort())
})

test('a process from before calls had originalTimestamp and channel reads those of this version, and this one reads its', () => {
  const { type: ours, write, versions } = recordSchema('analyticsCall')
  const { type: before, defaults } = versions[2]!
  assert.deepEqual(defaults, { originalTimestamp: null, channel: null })
  const read = (by: Type, from: Type, bytes: Buffer) => ({
    ...(by.fromBuffer(bytes, by.createResolver(from)) as AnalyticsCall),
  })
  const call = someCall({ originalTimestamp: 1_767_323_045_006, channel: 'browser', integrations: '{}' })
  const { originalTimestamp: _original, channel: _channel, ...known } = call
  const buffer = Buffer.alloc(1_000)
  const written = buffer.subarray(0, write(call, buffer, 0))
  assert.deepEqual(read(before, ours, written), known)
  assert.deepEqual(read(ours, before, before.toBuffer(known)), { ...known, ...defaults })
})
