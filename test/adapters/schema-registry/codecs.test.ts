import assert from 'node:assert/strict'
import { before, test } from 'node:test'
import avro from 'avsc'
import fc from 'fast-check'
import { createCodecs } from '../../../src/adapters/schema-registry/codecs.ts'
import type { Codecs } from '../../../src/adapters/schema-registry/codecs.ts'
import { Registry } from '../../../src/adapters/schema-registry/registry.ts'
import { isReport } from '../../../src/adapters/schema-registry/ledger-records.ts'
import { recordSchema } from '../../../src/adapters/schema-registry/schemas.ts'
import { registerSchemas } from '../../../src/adapters/schema-registry/subjects.ts'
import { deadLetterReasons } from '../../../src/core/delivery/delivery.ts'
import type { DeadLetter, RetryDelivery } from '../../../src/core/delivery/delivery.ts'
import type { KeyedRetryDelivery } from '../../../src/adapters/schema-registry/delivery-fields.ts'
import { deliveryEvent, type DeliveryEvent } from '../../../src/core/ledger/delivery-event.ts'
import { noTally } from '../../../src/core/ledger/result-codes.ts'
import { outcomeKinds } from '../../../src/core/delivery/outcome.ts'
import { topicNames } from '../../../src/core/topics.ts'
import { PostriderError } from '../../../src/errors.ts'
import { someCall } from '../../support/calls/calls.ts'
import { registryUrl, uniquePrefix } from '../../support/deployment/rig.ts'
import { silentLog as log } from '../../support/silent-log.ts'

const prefix = uniquePrefix()
const config = {
  topicPrefix: prefix,
  retryTiers: [
    { name: '10s', delayMs: 10_000 },
    { name: '1m', delayMs: 60_000 },
  ],
}
const registry = { url: registryUrl(), username: null, password: null }
const codecsOf = (topicPrefix: string): Codecs =>
  createCodecs({ registry, topics: topicNames(topicPrefix), log })

const codecs = codecsOf(prefix)

before(async () => {
  await registerSchemas(new Registry(registry), config)
  await Promise.all([
    codecs.calls.ready(),
    codecs.retries('10s').ready(),
    codecs.retries('1m').ready(),
    codecs.deadLetters.ready(),
    codecs.settings.ready(),
    codecs.deliveries.ready(),
  ])
})

/** Records come back as instances of avsc's classes; what counts is their fields. */
const plain = <T>(record: T): T => structuredClone(record)

const origin = { topic: 'analytics.calls', partition: 3, offset: 2 ** 40, appendedAt: 1_699_999_999_999 }

const retry: RetryDelivery = {
  id: 'm-1:crm',
  messageId: 'm-1',
  sourceId: 'shop',
  destinationId: 'crm',
  userIds: ['u-1', 'ä'],
  type: 'track',
  body: Buffer.from('{"version":1}'),
  endpointIds: ['u1', 'u2'],
  attempts: 2,
  timesScheduled: 3,
  firstAttemptAt: 1_700_000_000_000,
  firstScheduledAt: null,
  notBefore: null,
  outcomes: outcomeKinds.map((kind, index) => ({
    endpointId: `u${index}`,
    kind,
    status: index % 2 ? 503 : null,
    durationMs: index + 0.25,
    at: 1_700_000_000_001 + index,
    detail: index % 2 ? null : 'ECONNRESET',
  })),
  lastResponse: { endpointId: 'u1', status: 503, body: Buffer.from([0, 255]), durationMs: 12.5, at: 1 },
  lastExchange: {
    endpointId: 'u2',
    at: 1_700_000_000_009,
    method: 'POST',
    url: 'https://hooks.example.com/a?b=c',
    requestFields: 'host: hooks.example.com\nX-Signature: [not shown]\n',
    bodyBytes: 13,
    responseFields: null,
  },
  filled: [{ hole: 'call.event', value: 'ä "b"' }],
  origin,
  scheduledAt: 1_700_000_000_002,
  owner: 'member-1/4',
  from: { topic: 'webhooks.retry.10s', partition: 2, offset: 2 ** 40, appendedAt: null },
}

const { scheduledAt: _scheduledAt, owner: _owner, from: _from, ...delivery } = retry

const deadLetter: DeadLetter = {
  reason: 'expired',
  detail: 'line one\nline two',
  failedAt: 1_700_000_000_003,
  origin,
  owner: 'member-1/4',
  from: origin,
  delivery,
  raw: null,
  rawKey: Buffer.from('u-1'),
  omittedBytes: null,
  omittedSha256: null,
}

const lost = deliveryEvent('lost', 5, {
  topic: 'analytics.calls',
  partition: 1,
  firstOffset: 10,
  lastOffset: 2 ** 41,
})

const planned = deliveryEvent('planned', 6, {
  messageId: 'm',
  sourceId: 'shop',
  callType: 'track',
  receivedAt: 1_700_000_000_000,
  plan: [
    { destinationId: 'crm', deliveryId: 'm:crm', reason: null },
    { destinationId: 'mail', deliveryId: null, reason: 'not_chosen' },
  ],
})

const tallied = deliveryEvent('tally', 7, {
  topic: 'analytics.calls',
  partition: 1,
  tally: {
    id: 'b',
    predecessor: 'a',
    group: 'postrider',
    start: 2 ** 40,
    position: 2 ** 40 + 7,
    before: [3, 4],
    finished: [0, 7, 300, 1],
    lost: [0, 2],
    records: 6,
    owner: 'member-1/4',
    earlier: [{ owner: 'member-0/3', finished: [1, 1] }],
    counts: [
      {
        ...noTally(null),
        deadLettered: 1,
        skipped: 2,
        skipReasons: [{ reason: 'no_destination', count: 2 }],
        deadLetterReasons: [{ reason: 'undecodable', count: 1 }],
      },
      {
        ...noTally('crm'),
        delivered: 3,
        retried: 1,
        releaseReasons: [{ reason: 'order_wait', count: 1 }],
        erased: 1,
        held: 2,
        endpoints: [
          {
            urlId: 'u1',
            outcomes: [
              { outcome: 'success', count: 3 },
              { outcome: 'timeout', count: 300 },
            ],
            durations: [1, 2, 0, 0, 0, 0, 0, 0, 0, 300],
          },
        ],
      },
    ],
    held: [
      { destinationId: 'crm', pauseId: 'p', offsets: [300, 2], urls: [{ urlId: 'u1', offsets: [301, 1] }] },
    ],
  },
})

const collected = deliveryEvent('collected', 8, {
  sourceId: 'shop',
  collected: {
    instance: 'i',
    sequence: 7,
    from: 1_700_000_000_000,
    to: 1_700_000_010_000,
    types: [{ type: 'track', accepted: 5, duplicate: 1, refused: 2, flagged: 3 }],
    refusals: [{ reason: 'invalid_call', count: 2 }],
  },
})

const heartbeat = deliveryEvent('heartbeat', 9, {
  heartbeat: {
    instance: 'i',
    sequence: 8,
    isLast: true,
    intervalMs: 10_000,
    roles: ['collector', 'forwarder'],
    version: '1.0.0',
    host: 'a',
    pid: 1,
    startedAt: 1_700_000_000_000,
    requestsInFlight: 3,
    partitions: [
      { topic: 'analytics.calls', partition: 2, lag: null, overdueMs: null },
      { topic: 'analytics.calls', partition: 3, lag: 9, overdueMs: 1_500 },
    ],
    endpoints: [
      {
        destinationId: 'crm',
        urlId: 'u1',
        limit: 64,
        inFlight: 1,
        queued: 2,
        breaker: 'paused',
        pausedUntil: 1_700_000_020_000,
        downSince: 1_700_000_000_001,
        lastSuccessAt: 1_700_000_000_000,
        lastFailure: {
          at: 1_700_000_000_002,
          outcome: 'status_5xx',
          status: 503,
          detail: 'd',
          body: Buffer.from([0, 255]),
        },
        turns: 0.25,
      },
    ],
    endpointsOmitted: 4,
    settingsVersion: 2 ** 40,
  },
})

test('every field of every record survives encoding and decoding', () => {
  const calls = [
    someCall(),
    someCall({
      type: 'alias',
      previousId: 'old',
      sentAt: -5,
      context: '{"n":1.50}',
      name: '',
      anonymousId: 'é😀',
      originalTimestamp: 1_767_323_045_006,
      channel: 'browser',
    }),
  ]
  for (const call of calls) assert.deepEqual({ ...codecs.calls.tryDecode(codecs.calls.encode(call)) }, call)

  const value = codecs.retries('10s').encode({ ...retry, key: Buffer.from('u-1') })
  const back = codecs.retries('1m').tryDecode(value)!
  assert.deepEqual(plain(back), plain({ ...retry, key: Buffer.from('u-1'), run: null }))
  assert.equal(
    (codecs.retries('10s').tryDecode(codecs.retries('10s').encode(retry)) as KeyedRetryDelivery).key,
    null,
  )
  const bare = { ...retry, outcomes: [], endpointIds: [], lastResponse: null, body: new Uint8Array([1, 2]) }
  assert.deepEqual(
    plain((codecs.retries('1m').tryDecode(codecs.retries('10s').encode(bare)) as KeyedRetryDelivery).body),
    plain(bare.body),
  )

  const deadLetters: DeadLetter[] = [
    ...deadLetterReasons.map((reason) => ({ ...deadLetter, reason })),
    { ...deadLetter, reason: 'undecodable', delivery: null, raw: Buffer.from([1, 0, 2]), rawKey: null },
    { ...deadLetter, reason: 'too_large', delivery: null, omittedBytes: 5_000_000, omittedSha256: 'ab' },
  ]
  for (const deadLetter of deadLetters) {
    const { delivery: nested, ...rest } = codecs.deadLetters.tryDecode(codecs.deadLetters.encode(deadLetter))!
    const { delivery: given, ...expected } = deadLetter
    assert.deepEqual(plain(rest), plain(expected))
    assert.deepEqual(plain(nested), plain(given))
  }

  const event = {
    commandId: 'c',
    expectedVersion: 7,
    at: 9,
    aggregate: 'source',
    aggregateId: 's',
    type: 't',
    data: '{}',
    actor: 'ci',
  }
  assert.deepEqual({ ...codecs.settings.tryDecode(codecs.settings.encode(event)) }, event)
  for (const event of [lost, planned, tallied, collected, heartbeat])
    assert.deepEqual(plain(codecs.deliveries.tryDecode(codecs.deliveries.encode(event))!), plain(event))
})

test('a reader of a version without heartbeats and the details of tallies reads what there was before', () => {
  const { fields, ...rest } = recordSchema('deliveryEvent').json
  const before = structuredClone(fields.filter(({ name }) => !['collected', 'heartbeat'].includes(name)))
  const type = before[0]!.type as unknown as { symbols: string[] }
  type.symbols = type.symbols.filter((symbol) => !['collected', 'heartbeat'].includes(symbol))
  const old = avro.Type.forSchema({ ...rest, fields: before }, { wrapUnions: 'never' })
  const resolver = old.createResolver(recordSchema('deliveryEvent').type)
  for (const [event, kind] of [
    [tallied, 'tally'],
    [collected, 'unknown'],
    [heartbeat, 'unknown'],
  ] as const) {
    const read = old.fromBuffer(codecs.deliveries.encode(event).subarray(5), resolver) as DeliveryEvent
    assert.equal(read.type, kind)
    assert.equal(read.at, event.at)
  }
})

test('heartbeats and summaries are told from all other records of the ledger by their bytes', () => {
  const disposition = deliveryEvent('disposition', 1, { messageId: 'm', disposition: 'delivered' })
  for (const event of [lost, planned, tallied, disposition])
    assert.equal(isReport(codecs.deliveries.encode(event)), false, event.type)
  for (const event of [collected, heartbeat])
    assert.equal(isReport(codecs.deliveries.encode(event)), true, event.type)
  for (const value of [null, Buffer.alloc(0), Buffer.from([0, 0, 0, 0, 1])])
    assert.equal(isReport(value), false)
})

test('an encoded record begins with the magic byte and the schema id, and shares no bytes with the next', () => {
  const first = codecs.calls.encode(someCall({ messageId: 'first' }))
  const copy = Buffer.from(first)
  codecs.calls.encode(someCall({ messageId: 'other' }))
  assert.deepEqual(first, copy)
  assert.equal(first[0], 0)
  assert.ok(first.readInt32BE(1) > 0)
})

test('records of any size are encoded, large after small and small after large', () => {
  for (const size of [10, 70_000, 4_000_000, 20, 65_536, 65_500]) {
    const call = someCall({ properties: `{"a":"${'é'.repeat(size / 2)}"}` })
    assert.deepEqual({ ...codecs.calls.tryDecode(codecs.calls.encode(call)) }, call)
  }
})

test('all retry tiers can read each other’s records, and their schema is requested once from the registry', async () => {
  const fresh = codecsOf(prefix)
  const value = codecs.retries('10s').encode(retry)
  assert.equal(fresh.retries('1m').tryDecode(value), undefined)
  await fresh.retries('30m').load(value)
  assert.equal((fresh.retries('1m').tryDecode(value) as KeyedRetryDelivery).id, retry.id)
  assert.equal(fresh.retries('1m'), fresh.retries('1m'))
})

test('the error for an unregistered schema names the command that registers it', async () => {
  await assert.rejects(
    codecsOf(`${prefix}none.`).calls.ready(),
    (error) =>
      error instanceof PostriderError &&
      error.code === 'setup' &&
      error.message.includes(`${prefix}none.analytics.calls-value: run \`postrider setup\``),
  )
  assert.throws(() => codecsOf(prefix).calls.encode(someCall()), /ready\(\) comes before encode/)
})

function undecodable(value: Buffer | null, message: RegExp): void {
  assert.throws(
    () => codecs.calls.tryDecode(value),
    (error) => error instanceof PostriderError && error.code === 'undecodable' && message.test(error.message),
  )
}

test('bytes that are not a valid record are undecodable, each with its reason', () => {
  const good = codecs.calls.encode(someCall())
  undecodable(null, /no value/)
  undecodable(Buffer.alloc(0), /0 bytes/)
  undecodable(Buffer.from([0, 0, 0, 0]), /4 bytes/)
  undecodable(Buffer.concat([Buffer.from([1]), good.subarray(1)]), /magic byte/)
  undecodable(Buffer.from('{"type":"track"}'), /magic byte/)
  undecodable(Buffer.concat([good, Buffer.from([0])]), /go on behind/)
  for (let cut = 5; cut < good.length; cut++) undecodable(good.subarray(0, cut), /end too early/)
})

test('property: decoding any bytes is quick, never reads past their end and throws nothing else', () => {
  const header = codecs.calls.encode(someCall()).subarray(0, 5)
  const retryHeader = codecs.retries('10s').encode(retry).subarray(0, 5)
  const good = codecs.retries('10s').encode(retry)
  const bytes = fc.uint8Array({ maxLength: 60 })
  const damaged = fc.array(fc.tuple(fc.nat(good.length - 6), fc.nat(255)), { minLength: 1, maxLength: 4 })
  const ends = (attempt: () => unknown) => {
    try {
      attempt()
    } catch (error) {
      assert.ok(error instanceof PostriderError && error.code === 'undecodable', String(error))
    }
  }
  fc.assert(
    fc.property(bytes, damaged, (tail, hits) => {
      ends(() => codecs.calls.tryDecode(Buffer.concat([header, tail])))
      ends(() => codecs.retries('10s').tryDecode(Buffer.concat([retryHeader, tail])))
      const record = Buffer.from(good)
      for (const [at, byte] of hits) record[5 + at] = byte
      ends(() => codecs.retries('10s').tryDecode(record))
    }),
    { numRuns: 5_000 },
  )
})

test('a time outside of the calendar is decoded, so that the call is invalid rather than undecodable', () => {
  const value = codecs.calls.encode(someCall({ timestamp: 0, receivedAt: 1 }))
  const at = value.indexOf(Buffer.from([0x00, 0x02, 0x00]), 20)
  assert.ok(at > 0)
  const largest = Buffer.from([0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01])
  const record = Buffer.concat([value.subarray(0, at), largest, value.subarray(at + 1)])
  const call = codecs.calls.tryDecode(record)!
  assert.ok(call.timestamp > 8e15)
  assert.equal(call.receivedAt, 1)
})
