import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import Ajv2020 from 'ajv/dist/2020.js'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'
import { renderBody } from '../../../src/core/call/body.ts'
import { checkCall } from '../../../src/core/call/check-call.ts'
import { redacted, redactionOf } from '../../../src/core/call/redaction.ts'
import { asyncApiDocument, type DocumentedDestination } from '../../../src/core/catalogue/asyncapi.ts'
import { CallShapes } from '../../../src/core/catalogue/call-shape.ts'
import {
  addCalls,
  eventKeyOf,
  fieldsOfText,
  fieldsText,
  maxEventsOf,
  mergeEvents,
  noCalls,
  type EventKey,
  type SeenEvent,
} from '../../../src/core/catalogue/event-fold.ts'
import { eventsSchema, type DocumentObject } from '../../../src/core/catalogue/json-schema.ts'
import { CatalogueTables, createCatalogue } from '../../../src/operators/catalogue/database.ts'
import { defaultOptions } from '../../../src/core/settings/destination-options.ts'
import { someCall } from '../../support/calls/calls.ts'

const shapes = new CallShapes()

/** Events of these calls, which came in one after another. */
function seen(calls: readonly AnalyticsCall[]): (EventKey & { event: SeenEvent })[] {
  const events = new Map<string, EventKey & { event: SeenEvent }>()
  calls.forEach((call, at) => {
    const key = eventKeyOf(call)!
    const name = JSON.stringify(key)
    if (!events.has(name)) events.set(name, { ...key, event: noCalls() })
    addCalls(events.get(name)!.event, { calls: 1, firstSeen: at, lastSeen: at, shape: shapes.of(call) })
  })
  return [...events.values()]
}

const destination: DocumentedDestination = {
  id: 'crm',
  name: 'CRM',
  urls: [
    { url: 'https://crm.example.com/hooks/calls?token=hush-hush', headers: [{ name: 'X-Team' }] },
    { url: 'http://other.example.com:8080/', headers: [] },
  ],
  isSigned: true,
  options: defaultOptions,
}

function validatorOf(schema: DocumentObject): (value: unknown) => string | null {
  const ajv = new Ajv2020.default({ strict: false, allErrors: true, ownProperties: true })
  addFormats.default(ajv)
  const validate = ajv.compile(schema)
  return (value) => (validate(value) ? null : ajv.errorsText(validate.errors))
}

const officialSchema = createRequire(import.meta.url)('@asyncapi/specs/schemas/3.0.0.json') as object
/** It is written in draft 7, and brings the schema of that. */
const asyncApiAjv = new Ajv.default({ strict: false, meta: false, validateSchema: false })
addFormats.default(asyncApiAjv)
const validateAsyncApi = asyncApiAjv.compile(officialSchema)

const asyncApiFaults = (document: object): string | null =>
  validateAsyncApi(document) ? null : asyncApiAjv.errorsText(validateAsyncApi.errors?.slice(0, 5))

interface AsyncApi {
  servers: Record<string, object>
  channels: Record<string, { address: string; messages: object }>
  operations: Record<string, { action: string }>
  components: {
    messages: Record<string, { name: string; payload: DocumentObject }>
    schemas: { headers: { properties: object; required: string[] } }
  }
}

const documentOf = (
  events: Parameters<typeof asyncApiDocument>[1],
  given: Partial<DocumentedDestination> = {},
) => asyncApiDocument({ ...destination, ...given }, events, null) as unknown as AsyncApi

// Texts of a form, and others; keys that are data, and others (Ajv looks at no schema of `__proto__`).
const value = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom('text', '2026-01-02', '2026-01-02T03:04:05Z', 'ann@example.com', 1, 2.5, true, null),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'c.d', '4711', 'e@f.de', 'constructor'), tie('value'), {
      maxKeys: 4,
    }),
  ),
})).value
const map = fc.option(
  fc
    .dictionary(fc.constantFrom('a', 'b', 'c.d', '4711'), value, { maxKeys: 4 })
    .map((each) => JSON.stringify(each)),
  { nil: null },
)
const call = fc.record({
  type: fc.constantFrom('track', 'identify', 'page', 'screen', 'group', 'alias'),
  event: fc.constantFrom('Order Completed', 'Signed Up', 'Ünïcode / 100 %'),
  name: fc.constantFrom(null, 'Home'),
  category: fc.constantFrom(null, 'Docs'),
  userId: fc.constantFrom('u-1', null),
  properties: map,
  traits: map,
  context: map,
})
const calls = fc.array(call, { minLength: 1, maxLength: 12 }).map((given) =>
  given.map((each) =>
    someCall({
      ...(each as Partial<AnalyticsCall>),
      ...(each.type === 'alias' ? { userId: 'u-2', previousId: 'u-1' } : { anonymousId: 'a-1' }),
      ...(each.type === 'group' && { groupId: 'g-1' }),
    }),
  ),
)

test('each call that was seen is valid by the schema that is made of all of them', () => {
  fc.assert(
    fc.property(calls, (calls) => {
      const validate = validatorOf(eventsSchema('Shop', seen(calls), null))
      for (const { type, event, name, properties, traits, context } of calls) {
        const parsed = (text: string | null) => (text === null ? undefined : (JSON.parse(text) as object))
        const maps = { properties: parsed(properties), traits: parsed(traits), context: parsed(context) }
        const sent = { type, ...(type === 'track' ? { event } : { name: name ?? undefined }), ...maps }
        assert.equal(validate(JSON.parse(JSON.stringify(sent))), null)
      }
    }),
    { numRuns: 10 },
  )
})

test('a schema says what was always there, and refuses an unknown event and another type', () => {
  const orders = seen([
    someCall({ properties: '{"total":1,"at":"2026-01-02T03:04:05Z","products":[{"sku":"a"}]}' }),
    someCall({ properties: '{"total":2.5,"at":"2026-01-02T03:04:06Z","coupon":null,"4711":{"n":1}}' }),
  ])
  const schema = eventsSchema('Shop', orders, '2026-01-01T00:00:00.000Z')
  assert.deepEqual(schema, {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: 'Events of Shop',
    description: 'What was seen since 2026-01-01T00:00:00.000Z, one schema an event.',
    anyOf: [
      {
        title: 'track Order Completed',
        type: 'object',
        properties: {
          type: { const: 'track' },
          event: { const: 'Order Completed' },
          properties: {
            type: 'object',
            properties: {
              at: { type: 'string', format: 'date-time' },
              coupon: { type: 'null' },
              products: { type: 'array', items: { type: 'object', properties: { sku: { type: 'string' } } } },
              total: { type: 'number' },
            },
            required: ['at', 'total'],
            additionalProperties: { type: 'object', properties: { n: { type: 'integer' } } },
          },
        },
        required: ['type', 'event', 'properties'],
      },
    ],
  })
  const validate = validatorOf(schema)
  const order = {
    type: 'track',
    event: 'Order Completed',
    properties: { total: 1, at: '2026-01-02T03:04:05Z' },
  }
  assert.equal(validate(order), null)
  assert.notEqual(validate({ ...order, event: 'Another' }), null)
  assert.notEqual(validate({ ...order, properties: { ...order.properties, total: 'much' } }), null)
  assert.notEqual(validate({ ...order, properties: { total: 1 } }), null)
  assert.notEqual(validatorOf(eventsSchema('Shop', [], null))(order), null, 'nothing was seen')
})

test('an AsyncAPI document is valid, and so is the body of each call by the message of its event', () => {
  const drops = fc.constantFrom<string[] | null>(
    null,
    ['properties.a'],
    ['context', 'anonymousId'],
    ['properties."c.d".b', 'name', 'category'],
  )
  fc.assert(
    fc.property(calls, drops, (calls, drop) => {
      const document = documentOf(seen(calls), { options: { ...defaultOptions, drop } })
      const redaction = redactionOf(drop)
      const validate = new Map(
        Object.values(document.components.messages).map(({ name, payload }) => [name, validatorOf(payload)]),
      )
      for (const call of calls) {
        const { type, name } = eventKeyOf(call)!
        const { call: checked } = checkCall(call)
        const body = renderBody(redaction ? redacted(checked!, redaction) : checked!)
        assert.equal(validate.get(name === null ? type : `${type} ${name}`)!(JSON.parse(body)), null, body)
      }
    }),
    { numRuns: 8 },
  )
  assert.equal(asyncApiFaults(documentOf(seen([someCall()]))), null)
  fc.assert(
    fc.property(calls, (calls) => assert.equal(asyncApiFaults(documentOf(seen(calls))), null)),
    { numRuns: 3 },
  )
  const wrong = { ...documentOf([]), operations: { receive: { action: 'take' } } }
  assert.notEqual(asyncApiFaults(wrong), null, 'the official schema refuses what is wrong')
})

test('a document names URLs without queries, headers without values, and which requests are signed', () => {
  const document = documentOf(seen([someCall()]))
  assert.deepEqual(document.servers, {
    url1: { host: 'crm.example.com', protocol: 'https' },
    url2: { host: 'other.example.com:8080', protocol: 'http' },
  })
  assert.deepEqual(
    Object.values(document.channels).map(({ address }) => address),
    ['/hooks/calls', '/'],
  )
  assert.deepEqual(
    Object.entries(document.operations).map(([name, { action }]) => [name, action]),
    [
      ['receiveAtUrl1', 'receive'],
      ['receiveAtUrl2', 'receive'],
    ],
  )
  assert.doesNotMatch(JSON.stringify(document), /hush/)
  const headersOf = ({ components }: AsyncApi) => components.schemas.headers
  assert.deepEqual(Object.keys(headersOf(document).properties), [
    'User-Agent',
    'Content-Type',
    'Idempotency-Key',
    'X-Signature',
    'X-Team',
  ])
  const unsigned = headersOf(documentOf([], { isSigned: false }))
  assert.deepEqual(unsigned.required, ['User-Agent', 'Content-Type', 'Idempotency-Key'])
  const standard = { ...defaultOptions, standardWebhooks: true, traceContext: true }
  const all = headersOf(documentOf([], { options: standard }))
  assert.deepEqual(all.required.slice(-3), ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
  assert.ok('traceparent' in all.properties && !all.required.includes('traceparent'))
  assert.deepEqual(Object.keys(documentOf([]).components.messages), ['delete'], 'which is sent to all')
})

test('events whose names differ in signs only have messages of their own', () => {
  const events = ['a b', 'a/b', 'delete', 'a.b'].map((event) => someCall({ event }))
  const { messages } = documentOf(seen([...events, someCall({ type: 'identify' })])).components
  assert.deepEqual(
    Object.values(messages).map(({ name }) => name),
    ['track a b', 'track a/b', 'track delete', 'track a.b', 'identify', 'delete'],
  )
})

test('counts are the same in whichever order and parts calls are counted, and after they were stored', () => {
  fc.assert(
    fc.property(calls, fc.nat(12), (calls, cut) => {
      const same = calls.map((call) => ({ ...call, type: 'track' as const, event: 'Order Completed' }))
      const [whole] = seen(same)
      const parts = noCalls()
      for (const part of [same.slice(cut).reverse(), same.slice(0, cut)])
        for (const { event } of seen(part))
          mergeEvents(parts, { ...event, fields: fieldsOfText(fieldsText(event.fields)) })
      assert.deepEqual(parts.fields, whole!.event.fields)
      assert.equal(parts.calls, whole!.event.calls)
    }),
  )
})

test('beyond the bounds of events and fields calls are counted, and nothing more is kept', () => {
  const db = new DatabaseSync(':memory:')
  db.exec(createCatalogue)
  const tables = new CatalogueTables(db)
  const shape = shapes.of(someCall())
  const entry = (event: string) => ({
    sourceId: 'shop',
    event: eventKeyOf(someCall({ event })),
    shape,
    timestamp: 5,
  })
  for (let batch = 0; batch < 3; batch++)
    tables.take(Array.from({ length: 1_000 }, (_, at) => entry(`e-${batch * 1_000 + at}`)))
  tables.take([
    entry('e-0'),
    entry('e-2999'),
    { ...entry('x'), event: eventKeyOf(someCall({ event: 'x'.repeat(256) })) },
  ])
  const { events, omittedCalls } = tables.eventsOf('shop')
  assert.deepEqual([events.length, omittedCalls], [maxEventsOf('track'), 1_002])
  assert.equal(events.find(({ name }) => name === 'e-0')!.calls, 2)
  const [event] = seen(
    Array.from({ length: 10 }, (_, call) =>
      someCall({
        properties: JSON.stringify(
          Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${call}x${at}`, at])),
        ),
      }),
    ),
  )
  assert.equal(event!.event.fields.size, 300)
  assert.equal(event!.event.omittedFields, 500 - 299)
  const full = new CatalogueTables(db, 10)
  full.take([entry('e-0'), entry('one more')])
  assert.equal(full.eventsOf('shop').omittedCalls, 1_003, 'there is no room for another one')
  full.take([{ ...entry('e-0'), shape: shapes.of(someCall({ properties: '{"another":1}' })) }])
  const [known] = full.wholeEventsOf('shop', ({ name }) => name === 'e-0')
  assert.deepEqual([known!.event.calls, known!.event.fields.size, known!.event.omittedFields], [4, 0, 2])
  db.close()
})

test('pages and screens whose names change with each call crowd out no event, of their source or of another', () => {
  const db = new DatabaseSync(':memory:')
  db.exec(createCatalogue)
  const maxLength = 500_000
  const tables = new CatalogueTables(db, maxLength)
  const shape = shapes.of(someCall())
  const entry = (type: 'page' | 'screen' | 'track', name: string, sourceId = 'shop') => ({
    sourceId,
    event: eventKeyOf(someCall({ type, event: name, name })),
    shape,
    timestamp: 5,
  })
  const many = (type: 'page' | 'screen', sourceId?: string) =>
    Array.from({ length: 600 }, (_, at) => entry(type, `/order/${at}`, sourceId))
  tables.take([...many('page'), ...many('screen')])
  tables.take([...many('page').reverse(), entry('page', '/order/7')])
  const count = (type: string) => tables.eventsOf('shop').events.filter((each) => each.type === type).length
  assert.deepEqual([count('page'), count('screen')], [500, 500])
  assert.equal(tables.eventsOf('shop').omittedCalls, 300)
  tables.take(Array.from({ length: 100 }, (_, at) => entry('track', `Event ${at}`)))
  assert.equal(count('track'), 100)
  // Nor by what they take of all that is kept.
  let last = 0
  const keptOf = (sourceId: string) => tables.eventsOf(sourceId).events.map(({ name }) => name)
  do tables.take(many('page', `source-${++last}`))
  while (keptOf(`source-${last}`).length > 0 && last < 100)
  assert.deepEqual([keptOf('source-1').length, keptOf(`source-${last}`).length], [500, 0])
  tables.take([entry('track', 'Signed Up', `source-${last}`)])
  assert.deepEqual(keptOf(`source-${last}`), ['Signed Up'])
  db.close()
})
