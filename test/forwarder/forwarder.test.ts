import assert from 'node:assert/strict'
import { setImmediate as turn, setTimeout as delay } from 'node:timers/promises'
import { test, type TestContext } from 'node:test'
import fc from 'fast-check'
import { compileSchema } from '../../src/adapters/json-schema/compile-schema.ts'
import { defaultBreakerLimits } from '../../src/core/pacing/breaker.ts'
import type { AnalyticsCall } from '../../src/core/call/analytics-call.ts'
import type { DeliveryEvent } from '../../src/core/ledger/delivery-event.ts'
import type { DeadLetter, RetryDelivery } from '../../src/core/delivery/delivery.ts'
import { defaultOptions, editOptions, type OptionsEdit } from '../../src/core/settings/destination-options.ts'
import { type Destination, type SettingsState, noLogin } from '../../src/core/settings/settings.ts'
import { topicNames } from '../../src/core/topics.ts'
import { PostriderError } from '../../src/errors.ts'
import type { Attempt } from '../../src/forwarder/send/active-delivery.ts'
import { Forwarder } from '../../src/forwarder/forwarder.ts'
import type { ErasureSource, RecordDecoder, SuppressionSource } from '../../src/forwarder/plan/planner.ts'
import type { FetchedRecord } from '../../src/forwarder/consume/record-source.ts'
import { someCall } from '../support/calls/calls.ts'
import {
  encoded,
  FakeClient,
  FakeSource,
  noErasures,
  noForwarderMetrics,
  noMetrics,
  noSuppressions,
  outcome,
  paceBounds,
  quiet,
  fetched,
  record,
  textOf,
} from './fakes.ts'
import { until } from '../support/until.ts'
import { someSource } from '../support/sources.ts'

const topics = topicNames('')
const tier = topics.retry('10s')
const parked = { name: '10s', delayMs: 10_000 }

const decoder = <T>(read: (text: string) => T = JSON.parse): RecordDecoder<T> => ({
  tryDecode(value) {
    try {
      return read(String(value))
    } catch {
      throw new PostriderError('undecodable', 'not JSON')
    }
  },
  load: () => Promise.resolve(),
})

/** The whole engine between fakes, running. */
async function engine(
  t: TestContext,
  given: {
    urls?: number
    options?: OptionsEdit
    everything?: boolean
    readRetry?: (text: string) => RetryDelivery
    suppressions?: SuppressionSource
    erasures?: ErasureSource
    tierDelayMs?: number
  } = {},
) {
  const calls = new FakeSource()
  const retries = new FakeSource()
  const clients: FakeClient[] = []
  const appended: { topic: string; record: RetryDelivery & DeadLetter }[] = []
  const keys: (Uint8Array | string | null)[] = []
  const told: DeliveryEvent[] = []
  const counts = { deferrals: 0, encoded: 0 }
  const broker = { accepts: Promise.resolve(), acceptsLedger: Promise.resolve(), refuses: '' }
  const crm: Destination = {
    id: 'crm',
    name: 'CRM',
    type: 'Webhooks',
    sourceIds: ['shop'],
    urls: Array.from({ length: given.urls ?? 1 }, (_, index) => ({
      id: `u${index + 1}`,
      url: `http://127.0.0.${index + 1}/`,
      headers: [],
      goneAt: null,
    })),
    sharedSecret: null,
    earlierSecret: null,
    login: noLogin,
    templateSecrets: [],
    pause: null,
    endedPauses: [],
    options: editOptions(defaultOptions, given.options ?? {}),
    enabled: true,
  }
  const shop = someSource('shop')
  const settings = {
    state: {
      version: 1,
      sources: new Map([['shop', shop]]),
      destinations: new Map([['crm', crm]]),
      computations: new Map(),
      tokens: new Map(),
      replays: new Map(),
      plans: new Map(),
      acknowledgements: new Map(),
      mailAlerts: new Map(),
    } as SettingsState,
    caughtUp: 0,
    atCatchUp: () => {},
    change: () => {},
    onChange(listener: (state: SettingsState) => void) {
      this.change = () => listener(this.state)
    },
    catchUp() {
      this.caughtUp++
      this.atCatchUp()
      return Promise.resolve()
    },
  }
  /** What a run's calls are read from. */
  const kept = new Map<number, FetchedRecord>()
  const forwarder = new Forwarder({
    calls,
    retries,
    decoders: { calls: decoder<AnalyticsCall>(), retries: decoder(given.readRetry) },
    readCalls: (_partition, offsets) => Promise.resolve(offsets.flatMap((at) => kept.get(at) ?? [])),
    readParked: () => Promise.resolve(),
    encoders: {
      retry(_, record) {
        counts.encoded++
        keys.push(record.key)
        return encoded(JSON.stringify(record))
      },
      run(_, run) {
        counts.encoded++
        keys.push(null)
        return encoded(JSON.stringify(run))
      },
      retryOf: (_, record) => JSON.parse(textOf(record)) as RetryDelivery & { key: Uint8Array | null },
      deadLetter(record) {
        keys.push(record.rawKey)
        return encoded(JSON.stringify(record))
      },
      event(key, event) {
        keys.push(key)
        return encoded(JSON.stringify(event))
      },
    },
    sink: {
      problem: () => null,
      async append(topic, records) {
        const isLedger = topic === topics.deliveries
        await (isLedger ? broker.acceptsLedger : broker.accepts)
        if (topic === broker.refuses) return records
        for (const record of records) {
          const value = JSON.parse(textOf(record))
          if (isLedger) told.push(value as DeliveryEvent)
          else appended.push({ topic, record: value })
        }
        return []
      },
    },
    settings,
    erasures: given.erasures ?? noErasures,
    suppressions: given.suppressions ?? noSuppressions,
    openSecret: () => 'secret',
    compileSchema,
    transport: {
      open: () => {
        const client = new FakeClient()
        clients.push(client)
        return client
      },
      close: () => Promise.resolve(),
    },
    metrics: {
      ...noForwarderMetrics,
      destination: () => ({ ...noMetrics, deferral: () => void counts.deferrals++ }),
    },
    topics,
    tierDelayMs: () => given.tierDelayMs ?? parked.delayMs,
    endOffsets: () => Promise.resolve([]),
    callPartitions: () => Promise.resolve(0),
    reportGone() {},
    everything: given.everything ?? false,
    policy: { tiers: [parked, { name: '1h', delayMs: 3_600_000 }], windowMs: 4 * 3_600_000 },
    bounds: paceBounds(4),
    maxInFlight: 100,
    maxRecordBytes: 1_000_000,
    drainMs: 2_000,
    log: quiet,
  })
  const stop = new AbortController()
  const running = forwarder.run(stop.signal)
  t.after(async () => {
    stop.abort()
    await running
  })
  for (const [source, topic] of [
    [calls, topics.calls],
    [retries, tier],
  ] as const) {
    source.listener!.assigned([{ topic, partition: 0 }], 'member/1', true)
  }
  await until(() => calls.seeks.length > 0 && retries.seeks.length > 0, 5_000, 'restored')
  const feed = (source: FakeSource, topic: string) => {
    let next = 0
    return (value: string, key = 'u-1') => {
      const offset = next++
      const one = record(offset, key, value)
      if (source === calls) kept.set(offset, one)
      const records = fetched([one])
      source.listener!.fetched(topic, 0, { records, from: offset, to: offset + 1 })
    }
  }
  const call = feed(calls, topics.calls)
  const position = (source: FakeSource) => source.commits.at(-1)?.[0]?.position ?? 0
  return {
    calls,
    retries,
    clients,
    appended,
    kept,
    keys,
    told,
    counts,
    broker,
    crm,
    settings,
    call: (messageId: string, more: Partial<AnalyticsCall> = {}) =>
      call(JSON.stringify(someCall({ messageId, ...more }))),
    raw: call,
    retry: feed(retries, tier),
    committed: () => position(calls),
    committedRetries: () => position(retries),
    stop,
    running,
  }
}

const waiting = (given: Partial<RetryDelivery>): string =>
  JSON.stringify({
    id: 'm:crm',
    messageId: 'm',
    sourceId: 'shop',
    destinationId: 'crm',
    type: 'track',
    body: [123, 125],
    endpointIds: ['u1'],
    attempts: 1,
    timesScheduled: 1,
    firstAttemptAt: Date.now() - parked.delayMs,
    firstScheduledAt: Date.now() - parked.delayMs,
    notBefore: null,
    outcomes: [],
    lastResponse: null,
    lastExchange: null,
    origin: { topic: topics.calls, partition: 0, offset: 0 },
    scheduledAt: Date.now() - parked.delayMs,
    owner: 'x/1',
    from: null,
    ...given,
  })

test('a delivered call is committed', async (t) => {
  const { clients, call, committed } = await engine(t)
  call('a')
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  assert.equal(committed(), 0)
  clients[0]!.answer('success')
  await until(() => committed() === 1, 5_000, 'committed')
})

test('a failed call is finished only once the broker has its retry', async (t) => {
  const { clients, call, committed, broker, appended, calls } = await engine(t)
  const held = Promise.withResolvers<void>()
  broker.accepts = held.promise
  call('a', { userId: 'u-1' })
  call('b', { userId: 'u-2' })
  await until(() => clients[0]!.onWire.length >= 1, 5_000, 'sent')
  clients[0]!.answer('status_5xx')
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'the next of the key goes out')
  clients[0]!.answer('success')
  await until(() => calls.commits.length > 0, 5_000, 'b is finished above the position')
  assert.equal(committed(), 0)
  held.resolve()
  await until(() => committed() === 2, 5_000, 'committed')
  const [{ topic, record }] = appended as [(typeof appended)[0]]
  assert.equal(topic, tier)
  assert.deepEqual([record.attempts, record.timesScheduled, record.endpointIds], [1, 1, ['u1']])
  assert.ok(record.scheduledAt >= record.firstAttemptAt!)
})

test('keys are passed on byte for byte, and the key of a dead letter keeps nothing else in memory', async (t) => {
  const { clients, raw, committed, keys } = await engine(t)
  raw(JSON.stringify(someCall({ messageId: 'a' })), 'u-1')
  raw(JSON.stringify(someCall({ messageId: 'b' })), 'ü-1')
  raw(JSON.stringify(someCall({ messageId: 'c' })), 'ü-2')
  await until(() => clients[0]!.onWire.length === 3, 5_000, 'sent')
  for (const kind of ['status_5xx', 'status_5xx', 'status_4xx'] as const) clients[0]!.answer(kind)
  await until(() => committed() === 3, 5_000, 'committed')
  const [dead, ...others] = keys.filter((key) => String(Buffer.from(key!)) === 'ü-2') as Uint8Array[]
  assert.deepEqual(others, [])
  assert.equal(dead!.buffer.byteLength, dead!.length)
  assert.deepEqual(
    new Set(keys.map((key) => String(Buffer.from(key!)))),
    new Set(['a', 'b', 'c', 'u-1', 'ü-1', 'ü-2', 'group/analytics.calls/0']),
  )
})

test('a failure while ownership is uncertain is published once the partition is owned, and never after it is lost', async (t) => {
  const { clients, call, raw, committed, appended, calls } = await engine(t)
  call('a', { userId: 'u-1' })
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  calls.fresh = false
  clients[0]!.answer('timeout')
  raw('no call at all')
  let checks = 0
  calls.isFresh = () => {
    checks++
    return calls.fresh
  }
  await until(() => checks >= 6, 5_000, 'each held record checked several times')
  assert.deepEqual(appended, [])
  calls.fresh = true
  await until(() => committed() === 2, 5_000, 'committed')
  assert.deepEqual(appended.map(({ topic }) => topic).sort(), [tier, topics.deadLetters].sort())

  call('b', { userId: 'u-2' })
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  calls.fresh = false
  clients[0]!.answer('timeout')
  calls.listener!.lost()
  calls.fresh = true
  calls.committedMap = () => Promise.resolve([{ position: 3 }])
  calls.listener!.assigned([{ topic: topics.calls, partition: 0 }], 'member/2', false)
  await until(() => calls.seeks.length === 2, 5_000, 'assigned again')
  call('c', { userId: 'u-3' })
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  clients[0]!.answer('timeout')
  // Records of one topic are written in order: the lost one would come first.
  await until(() => appended.length > 2, 5_000, 'published')
  assert.deepEqual(
    appended.slice(2).map(({ record }) => (record as RetryDelivery).id),
    ['c:crm'],
  )
})

test('a record that is undecodable or not a valid call becomes a dead letter and stops nothing', async (t) => {
  const { clients, raw, call, committed, appended } = await engine(t)
  raw('no JSON')
  call('b', { event: null })
  call('c')
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'c is sent')
  clients[0]!.answer('success')
  await until(() => committed() === 3, 5_000, 'committed')
  assert.deepEqual(
    appended.map(({ topic, record }) => [topic, record.reason, record.origin.offset]),
    [
      [topics.deadLetters, 'undecodable', 0],
      [topics.deadLetters, 'invalid_call', 1],
    ],
  )
})

test('a record that is not a call is finished only once the broker has its dead letter', async (t) => {
  const { clients, raw, call, committed, broker, calls } = await engine(t)
  const held = Promise.withResolvers<void>()
  broker.accepts = held.promise
  raw('no JSON')
  call('b')
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'b is sent')
  clients[0]!.answer('success')
  await until(() => calls.commits.length > 0, 5_000, 'b is finished above the position')
  assert.equal(committed(), 0)
  held.resolve()
  await until(() => committed() === 2, 5_000, 'committed')
})

test('a source is called unknown only after the settings log has been read to its end', async (t) => {
  const { clients, call, settings, appended, committed } = await engine(t)
  settings.atCatchUp = () => {
    const sources = new Map(settings.state.sources).set('new', someSource('new'))
    const crm = settings.state.destinations.get('crm')!
    settings.state = {
      version: 3,
      sources,
      destinations: new Map([['crm', { ...crm, sourceIds: ['shop', 'new'] }]]),
      computations: new Map(),
      tokens: new Map(),
      replays: new Map(),
      plans: new Map(),
      acknowledgements: new Map(),
      mailAlerts: new Map(),
    }
    settings.change()
  }
  call('a', { sourceId: 'new' })
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  clients[0]!.answer('success')
  call('b', { sourceId: 'nobody' })
  await until(() => committed() === 2, 5_000, 'committed')
  assert.deepEqual(
    appended.map(({ record }) => record.reason),
    ['unknown_source'],
  )
  assert.ok(settings.caughtUp >= 2)
})

test('a retry is never early, and is sent within a second of its due time', async (t) => {
  const { clients, retry, committedRetries } = await engine(t)
  const [client] = clients as [FakeClient]
  let sentAt = -Infinity
  const send = t.mock.method(client, 'send', (...given: Parameters<FakeClient['send']>) => {
    sentAt = Date.now()
    FakeClient.prototype.send.apply(client, given)
  })
  const due = Date.now() + 300
  retry(waiting({ scheduledAt: due - parked.delayMs }))
  // A machine that does nothing at all when it is due is not the forwarder's fault: this timer is late then, too.
  await delay(due - Date.now())
  const couldBeSentAt = Math.max(due, Date.now())
  await until(() => send.mock.callCount() === 1, 5_000, 'sent')
  assert.ok(sentAt >= due && sentAt < couldBeSentAt + 1_000, `${sentAt - due} ms after it was due`)
  clients[0]!.answer('success')
  await until(() => committedRetries() === 1, 5_000, 'committed')
})

const minutes = (count: number) => Date.now() - count * 60_000

test('a retry that comes due after its window becomes a dead letter without a request, and the ledger records it', async (t) => {
  const { clients, retry, appended, committedRetries, told } = await engine(t)
  const since = { firstAttemptAt: minutes(241), firstScheduledAt: minutes(240) }
  retry(waiting({ ...since, id: 'late:crm', attempts: 3 }))
  retry(waiting({ firstAttemptAt: null, firstScheduledAt: minutes(241), id: 'never:crm', attempts: 0 }))
  // A wait that was asked for does not keep it alive either.
  retry(waiting({ ...since, id: 'asked:crm', notBefore: Date.now() + 60_000 }))
  retry(waiting({ firstAttemptAt: minutes(239), firstScheduledAt: minutes(239), id: 'last:crm' }))
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'the one within its window is sent')
  clients[0]!.answer('success')
  await until(() => committedRetries() === 4, 5_000, 'committed')
  assert.deepEqual(clients[0]!.sent, ['last:crm'])
  const deadLetters = appended.map(({ topic, record }) => [
    topic,
    record.delivery?.id,
    record.reason,
    record.delivery?.attempts,
  ])
  assert.deepEqual(deadLetters, [
    [topics.deadLetters, 'late:crm', 'expired', 3],
    [topics.deadLetters, 'never:crm', 'not_attempted', 0],
    [topics.deadLetters, 'asked:crm', 'expired', 1],
  ])
  assert.equal(String(Buffer.from(appended[0]!.record.rawKey!)), 'u-1')
  const dispositions = told.filter(({ type }) => type === 'disposition')
  assert.deepEqual(
    dispositions.map(({ deliveryId, disposition, reason }) => [deliveryId, disposition, reason]).sort(),
    [
      ['asked:crm', 'dead_lettered', 'expired'],
      ['last:crm', 'delivered', null],
      ['late:crm', 'dead_lettered', 'expired'],
      ['never:crm', 'dead_lettered', 'not_attempted'],
    ],
  )
})

test('property: whatever the times of a retry, no request is sent later than its window allows', async (t) => {
  const { clients, retries, committedRetries } = await engine(t)
  const windowMs = 4 * 3_600_000
  const ago = fc.option(fc.integer({ min: -10 * 3_600_000, max: 10 * 3_600_000 }), { freq: 4 })
  let offset = 0
  await fc.assert(
    fc.asyncProperty(ago, ago, fc.nat(20), async (attemptAgo, scheduledAgo, attempts) => {
      const appendedAt = Date.now() - parked.delayMs
      const at = (ms: number | null) => (ms === null ? null : Date.now() - ms)
      const [firstAttemptAt, firstScheduledAt] = [at(attemptAgo), at(scheduledAgo)]
      const times = { firstAttemptAt, firstScheduledAt, scheduledAt: appendedAt, attempts }
      const value = waiting({ ...times, id: `m-${offset}:crm` })
      const records = fetched([{ ...record(offset, `u-${offset}`, value), timestamp: appendedAt }])
      retries.listener!.fetched(tier, 0, { records, from: offset, to: ++offset })
      const began = Math.min(firstAttemptAt ?? Infinity, firstScheduledAt ?? Infinity, Date.now())
      await until(() => clients[0]!.onWire.length > 0 || committedRetries() === offset, 5_000, 'sent or kept')
      if (clients[0]!.onWire.length > 0) {
        assert.ok(Date.now() - began <= windowMs + 1_000, `sent ${Date.now() - began} ms after it began`)
        clients[0]!.answer('success')
      } else assert.ok(Date.now() - began > windowMs, `not sent ${Date.now() - began} ms after it began`)
      await until(() => committedRetries() === offset, 5_000, 'committed')
    }),
    { numRuns: 30 },
  )
})

test('a retry with counters that no delivery can reach is kept unchanged, and the next retry is sent', async (t) => {
  const { clients, retry, appended, committedRetries } = await engine(t)
  retry(waiting({ id: 'a:crm', attempts: 2 ** 31 - 1 }))
  retry(waiting({ id: 'b:crm', timesScheduled: 2 ** 31 - 1 }))
  retry(waiting({ id: 'c:crm', attempts: -1 }))
  retry(waiting({ id: 'd:crm' }))
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  clients[0]!.answer('timeout')
  await until(() => committedRetries() === 4, 5_000, 'committed')
  assert.deepEqual(clients[0]!.sent, ['d:crm'])
  assert.deepEqual(
    appended.map(({ topic, record }) => [topic, record.reason, record.delivery ?? null]),
    [
      [topics.deadLetters, 'undecodable', null],
      [topics.deadLetters, 'undecodable', null],
      [topics.deadLetters, 'undecodable', null],
      [topics.retry('1h'), undefined, null],
    ],
  )
})

test('a retry from the future waits no longer than its tier, and its window ends', async (t) => {
  const { clients, retries, appended, committedRetries } = await engine(t)
  const appendedAt = Date.now() - parked.delayMs
  const far = appendedAt + 365 * 24 * 3_600_000
  const given: Partial<RetryDelivery>[] = [
    { id: 'a:crm', firstAttemptAt: far, firstScheduledAt: far },
    // Their window begins when the broker appended them, so they are rescheduled, but not forever.
    { id: 'b:crm', firstAttemptAt: null, firstScheduledAt: null, notBefore: far, attempts: 0 },
  ]
  const records = given.map((each, offset) => ({
    ...record(offset, `u-${offset}`, waiting({ scheduledAt: appendedAt, ...each })),
    timestamp: appendedAt,
  }))
  retries.listener!.fetched(tier, 0, { records: fetched(records), from: 0, to: 2 })
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  clients[0]!.answer('status_5xx')
  await until(() => committedRetries() === 2, 5_000, 'committed')
  const beginnings = new Map(
    appended.map(({ record }) => [record.id, [record.firstAttemptAt, record.firstScheduledAt]]),
  )
  assert.deepEqual(beginnings.get('a:crm'), [appendedAt, appendedAt])
  assert.deepEqual(beginnings.get('b:crm'), [null, appendedAt])
})

test('a retry that waits for its answer keeps nothing of its fetch in memory', async (t) => {
  const inFetch = (text: string) =>
    Buffer.concat([Buffer.alloc(1_000_000), Buffer.from(text)]).subarray(1_000_000)
  const { clients, retry } = await engine(t, {
    readRetry: (text) => {
      const read = JSON.parse(text) as RetryDelivery
      const lastResponse = { endpointId: 'u1', status: 500, body: inFetch('down'), durationMs: 1, at: 1 }
      const key = inFetch('u-1')
      return { ...read, key, body: inFetch('{}'), lastResponse } as RetryDelivery
    },
  })
  retry(waiting({}))
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  const [{ request, sink }] = clients[0]!.onWire as [FakeClient['onWire'][0]]
  const { delivery } = (sink as Attempt).active
  const { body } = request
  const { lastResponse } = delivery
  assert.deepEqual([body, lastResponse!.body].map(String), ['{}', 'down'])
  const kept = [body, ...Object.values(delivery), ...Object.values(lastResponse!)] as unknown[]
  for (const value of kept)
    if (value instanceof Uint8Array) assert.equal(value.buffer.byteLength, value.length, String(value))
})

test('a retry that was checked while the clock was an hour behind is sent once it is due', async (t) => {
  const { clients, retries, retry } = await engine(t)
  const real = Date.now
  retry(waiting({ scheduledAt: real() + 300 - parked.delayMs }))
  const behind = t.mock.method(Date, 'now', () => real() - 3_600_000)
  await until(() => retries.paused.has(0), 5_000, 'the retry checked, and due in an hour')
  behind.mock.restore()
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
})

test('retries that come due together at an endpoint that takes nothing leave time for other work in each turn', async (t) => {
  const { clients, call, retries, counts, committedRetries } = await engine(t)
  for (let index = 0; clients[0]!.sent.length < defaultBreakerLimits.failures; index++) {
    call(`f${index}`, { userId: `f${index}` })
    await until(() => clients[0]!.onWire.length > 0, 5_000, 'sent')
    clients[0]!.answer('network')
  }
  const records = Array.from({ length: 200 }, (_, index) =>
    record(index, `u-${index}`, waiting({ id: `m-${index}:crm` })),
  )
  retries.listener!.fetched(tier, 0, { records: fetched(records), from: 0, to: records.length })
  for (let before = 0; before < records.length; await turn()) {
    const { deferrals } = counts
    assert.ok(deferrals - before <= 32, `${deferrals - before} in one turn`)
    before = deferrals
  }
  await until(() => committedRetries() === records.length, 5_000, 'all published')
})

test('retries that come due together before their Retry-After are rescheduled a few at a time', async (t) => {
  const { retries, counts, committedRetries } = await engine(t)
  const records = Array.from({ length: 200 }, (_, index) =>
    record(index, `u-${index}`, waiting({ id: `m-${index}:crm`, notBefore: Date.now() + 60_000 })),
  )
  retries.listener!.fetched(tier, 0, { records: fetched(records), from: 0, to: records.length })
  for (let before = 0; before < records.length; await turn()) {
    const { encoded } = counts
    assert.ok(encoded - before <= 32, `${encoded - before} in one turn`)
    before = encoded
  }
  await until(() => committedRetries() === records.length, 5_000, 'all published')
})

test('records behind a retry that is due later are not fetched until shortly before', async (t) => {
  const { clients, retry, retries } = await engine(t)
  // Paused until 3 s before: what is left of it is longer than a machine leaves a process alone.
  const due = Date.now() + 4_500
  retry(waiting({ scheduledAt: due - parked.delayMs }))
  await until(() => retries.paused.has(0), 5_000, 'paused')
  await until(() => !retries.paused.has(0), 5_000, 'resumed')
  assert.ok(Date.now() < due, 'resumed too late')
  assert.deepEqual(clients[0]!.sent, [])
  retry(waiting({ scheduledAt: due - parked.delayMs }))
  await until(() => clients[0]!.onWire.length === 2, 5_000, 'both sent')
})

test('a retry that is due before its Retry-After is rescheduled without an attempt', async (t) => {
  const { clients, retry, appended, committedRetries } = await engine(t)
  const notBefore = Date.now() + 5_000
  retry(waiting({ notBefore }))
  await until(() => committedRetries() === 1, 5_000, 'committed')
  assert.deepEqual(clients[0]!.sent, [])
  const [{ topic, record }] = appended as [(typeof appended)[0]]
  assert.deepEqual([topic, record.attempts, record.timesScheduled, record.notBefore], [tier, 1, 2, notBefore])
})

test('a delivery that is too large for its tier is kept completely as a dead letter, and recorded', async (t) => {
  const { clients, call, appended, committed, broker, told } = await engine(t)
  broker.refuses = tier
  call('m-1')
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  clients[0]!.answer('status_5xx')
  await until(() => committed() === 1, 5_000, 'committed')
  const [{ topic, record }] = appended as [(typeof appended)[0]]
  assert.equal(topic, topics.deadLetters)
  assert.deepEqual([record.reason, record.origin.offset], ['too_large', 0])
  const { messageId, attempts, endpointIds, body } = record.delivery!
  assert.deepEqual([messageId, attempts, endpointIds], ['m-1', 1, ['u1']])
  assert.ok(Buffer.from(body).length > 0)
  assert.equal(String(Buffer.from(record.rawKey!)), 'u-1')
  const ends = told.filter(({ type }) => type === 'disposition')
  assert.deepEqual(
    ends.map((event) => [event.messageId, event.disposition, event.reason, event.attempt]),
    [['m-1', 'dead_lettered', 'too_large', 1]],
  )
})

test('a retry is skipped if all of its URLs were removed', async (t) => {
  const { clients, retry, appended, committedRetries } = await engine(t)
  retry(waiting({ endpointIds: ['u9'] }))
  await until(() => committedRetries() === 1, 5_000, 'committed')
  assert.deepEqual([clients[0]!.sent, appended], [[], []])
})

test('a retry waits while it is not known who is suppressed, and then is skipped or sent', async (t) => {
  const known = Promise.withResolvers<void>()
  let isKnown = false
  let asked = 0
  const { clients, retry, told, committedRetries } = await engine(t, {
    suppressions: {
      isEmpty: false,
      covers: ({ userIds }) => userIds.includes('ada'),
      pending: () => (++asked && isKnown ? null : known.promise),
    },
  })
  retry(waiting({ userIds: ['ada'] }))
  retry(waiting({ id: 'n:crm', messageId: 'n', userIds: ['bob'] }), 'bob')
  await until(() => asked > 0, 5_000, 'asked')
  await turn()
  assert.deepEqual([clients[0]!.sent, told.filter(({ type }) => type === 'disposition')], [[], []])
  isKnown = true
  known.resolve()
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  assert.deepEqual(clients[0]!.sent, ['n:crm'])
  clients[0]!.answer('success')
  await until(() => committedRetries() === 2, 5_000, 'committed')
  const ends = told.filter(({ type }) => type === 'disposition')
  assert.deepEqual(
    ends.map(({ messageId, disposition, reason }) => [messageId, disposition, reason]),
    [
      ['m', 'skipped', 'suppressed'],
      ['n', 'delivered', null],
    ],
  )
})

for (const [what, tierDelayMs, attempts] of [
  ['a retry', parked.delayMs, 1],
  ['a replayed call', 0, 0],
] as const) {
  test(`${what} that waits for a slot is not sent once its user is suppressed`, async (t) => {
    const suppressed = new Set<string>()
    const { clients, retry, told } = await engine(t, {
      tierDelayMs,
      suppressions: {
        isEmpty: false,
        covers: ({ userIds }) => userIds.some((id) => suppressed.has(id)),
        pending: () => null,
      },
    })
    for (let n = 0; n < 5; n++) retry(waiting({ attempts, id: `${n}:crm`, userIds: [`u-${n}`] }), `u-${n}`)
    await until(() => clients[0]!.onWire.length === 4, 5_000, 'four of them are sent')
    suppressed.add('u-4')
    clients[0]!.answer('success')
    const reasons = () => told.map(({ disposition, reason }) => `${disposition} ${reason}`)
    await until(() => reasons().includes('skipped suppressed'), 5_000, 'the fifth is skipped')
    assert.equal(clients[0]!.sent.length, 4)
  })
}

for (const [what, endOfFailed] of [
  ['erased', 'erased'],
  // It is skipped when it comes due.
  ['suppressed', 'retried'],
] as const)
  for (const kind of ['success', 'status_5xx'] as const)
    test(`a retry of a user who is ${what} while it is on the wire to one URL, and waits for another, ends as the first one answers: ${kind}`, async (t) => {
      const gone = new Set<string>()
      const source = {
        isEmpty: false,
        covers: ({ userIds }: { userIds: readonly string[] }) => userIds.some((id) => gone.has(id)),
        pending: () => null,
      }
      const { clients, retry, told, appended, committedRetries } = await engine(t, {
        urls: 2,
        ...(what === 'erased' ? { erasures: source } : { suppressions: source }),
      })
      const [one, two] = clients as [FakeClient, FakeClient]
      for (let n = 0; n < 4; n++)
        retry(waiting({ id: `${n}:crm`, userIds: [`u-${n}`], endpointIds: ['u2'] }), `u-${n}`)
      retry(waiting({ id: 'both:crm', userIds: ['ada'], endpointIds: ['u1', 'u2'] }), 'ada')
      await until(() => one.onWire.length === 1 && two.onWire.length === 4, 5_000, 'sent')
      gone.add('ada')
      while (two.onWire.length > 0) two.answer('success')
      one.answer(kind)
      await until(() => committedRetries() === 5, 5_000, 'committed')
      const found = told.find(({ type, deliveryId }) => type === 'disposition' && deliveryId === 'both:crm')
      assert.equal(found!.disposition, kind === 'success' ? 'delivered' : endOfFailed)
      assert.deepEqual(
        appended.map(({ record }) => record.endpointIds),
        found!.disposition === 'retried' ? [['u1', 'u2']] : [],
      )
      assert.equal(two.sent.length, 4)
    })

test('a parked call that is asked to wait beyond its window is tried while a retry still fits into that', async (t) => {
  const { retries, clients, call, appended } = await engine(t, { options: { order: 'strict' } })
  const strict = topics.retry('strict')
  const partitions = [tier, strict].map((topic) => ({ topic, partition: 0 }))
  retries.listener!.assigned(partitions, 'member/1', true)
  await until(() => retries.seeks.length === 2, 5_000, 'assigned')
  call('m')
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'its request')
  clients[0]!.answer('status_5xx', 'm:crm', { status: 500, retryAfterMs: 30 * 3_600_000 })
  await until(() => appended.length === 1, 5_000, 'that it is parked')
  const { topic, record: first } = appended[0]!
  const last = (firstAttemptAt: number) => firstAttemptAt + 4 * 3_600_000 - parked.delayMs
  assert.deepEqual([topic, first.notBefore], [strict, last(first.firstAttemptAt!)])
  // When it is tried after that is in memory alone, until it is let go: another one has waited for long enough behind it.
  const firstAttemptAt = Date.now() - 4 * 3_600_000 + 60_000
  const [head, next] = ['n', 'o'].map((id, offset) =>
    record(
      offset,
      'ada',
      waiting({ id: `${id}:crm`, messageId: id, firstAttemptAt, scheduledAt: Date.now() }),
    ),
  )
  retries.listener!.fetched(strict, 0, { records: fetched([head!]), from: 0, to: 1 })
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'its second request')
  clients[0]!.answer('status_5xx', 'n:crm', { status: 500, retryAfterMs: 30 * 3_600_000 })
  retries.listener!.fetched(strict, 0, { records: fetched([next!]), from: 1, to: 2 })
  await until(() => appended.length === 2, 5_000, 'that it is let go')
  assert.deepEqual([appended[1]!.topic, appended[1]!.record.notBefore], [tier, last(firstAttemptAt)])
})

test('a parked call that is let go is not published once its user is erased', async (t) => {
  const { retries, told, appended } = await engine(t, {
    options: { order: 'strict', orderLimit: 1 },
    erasures: { isEmpty: false, covers: ({ userIds }) => userIds.includes('ada'), pending: () => null },
  })
  const strict = topics.retry('strict')
  const partitions = [tier, strict].map((topic) => ({ topic, partition: 0 }))
  retries.listener!.assigned(partitions, 'member/1', true)
  await until(() => retries.seeks.length === 2, 5_000, 'assigned')
  // The first one is not due for a minute, and more calls wait behind it than may.
  const parkedCalls = ['a', 'b', 'c'].map((id, offset) =>
    record(
      offset,
      'ada',
      waiting({
        ...{ id: `${id}:crm`, messageId: id, userIds: ['ada'] },
        notBefore: offset === 0 ? Date.now() + 60_000 : null,
      }),
    ),
  )
  retries.listener!.fetched(strict, 0, { records: fetched(parkedCalls), from: 0, to: 3 })
  const ends = () => told.filter(({ type }) => type === 'disposition')
  await until(() => ends().length === 3, 5_000, 'that all have ended')
  assert.deepEqual(
    ends().map(({ messageId, disposition }) => [messageId, disposition]),
    ['a', 'b', 'c'].map((id) => [id, 'erased']),
  )
  assert.deepEqual(appended, [])
})

test('a call of which no request can be made is no dead letter once its user is erased', async (t) => {
  const { crm, settings, call, told, appended } = await engine(t, {
    erasures: { isEmpty: false, covers: ({ userIds }) => userIds.includes('ada'), pending: () => null },
  })
  const urls = [{ ...crm.urls[0]!, url: 'http://127.0.0.1/${call.properties.total}' }]
  settings.state = { ...settings.state, destinations: new Map([['crm', { ...crm, urls }]]) }
  settings.change()
  call('a', { userId: 'ada', properties: '{}' })
  call('b', { userId: 'bob', properties: '{}' })
  const ends = () => told.filter(({ type }) => type === 'disposition')
  await until(() => ends().length === 2, 5_000, 'that both have ended')
  assert.deepEqual(
    ends().map(({ messageId, disposition }) => [messageId, disposition]),
    [
      ['a', 'erased'],
      ['b', 'dead_lettered'],
    ],
  )
  assert.deepEqual(
    appended.map(({ record }) => [record.reason, record.delivery?.messageId]),
    [['unrenderable', 'b']],
  )
})

test('a retry whose last URL fails finally becomes a dead letter that keeps its history', async (t) => {
  const { clients, retry, appended, committedRetries } = await engine(t, { urls: 2 })
  const earlier = {
    endpointId: 'u2',
    kind: 'status_4xx' as const,
    status: 404,
    durationMs: 1,
    at: 1,
    detail: null,
  }
  retry(waiting({ outcomes: [earlier] }))
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'sent')
  const [one] = clients[0]!.onWire.splice(0)
  one!.sink.onOutcome(outcome('gone', { status: 410 }))
  await until(() => committedRetries() === 1, 5_000, 'committed')
  const [{ topic, record }] = appended as [(typeof appended)[0]]
  assert.deepEqual([topic, record.reason], [topics.deadLetters, 'gone'])
  assert.deepEqual(
    record.delivery!.outcomes.map(({ kind }) => kind),
    ['status_4xx', 'gone'],
  )
  assert.equal(record.delivery!.attempts, 2)
  assert.deepEqual(clients[1]!.sent, [])
})

test('a stop lets requests on the wire end, starts no more, and commits what finished', async (t) => {
  const { clients, call, stop, running, committed } = await engine(t)
  call('a')
  call('b')
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'a is sent')
  stop.abort()
  for (let turns = 0; turns < 50; turns++) await turn()
  clients[0]!.answer('success')
  await running
  assert.deepEqual(clients[0]!.sent, ['a:crm'])
  assert.equal(committed(), 1)
})

test('a call that the destination’s filter excludes is finished without a request', async (t) => {
  const { clients, call, committed } = await engine(t, { options: { types: ['identify'] } })
  call('a')
  call('b', { type: 'delete' })
  await until(() => clients[0]!.onWire.length === 1, 5_000, 'b is sent')
  assert.equal(clients[0]!.onWire[0]!.request.idempotencyKey, 'b:crm')
  clients[0]!.answer('success')
  await until(() => committed() === 2, 5_000, 'committed')
  assert.deepEqual(clients[0]!.sent, ['b:crm'])
})

test('with delivery to every URL, a record is finished once each URL has a disposition', async (t) => {
  const { clients, call, committed, appended } = await engine(t, { urls: 2, options: { deliverTo: 'every' } })
  const [one, two] = clients as [FakeClient, FakeClient]
  call('a')
  call('b')
  await until(() => one.onWire.length === 1 && two.onWire.length === 1, 5_000, 'sent')
  one.answer('success', 'a:crm:u1')
  await until(() => one.onWire.length === 1, 5_000, "the first URL's next goes out")
  one.answer('success', 'b:crm:u1')
  two.answer('status_5xx', 'a:crm:u2')
  await until(() => committed() === 1, 5_000, 'a is finished')
  const [{ record }] = appended as [(typeof appended)[0]]
  assert.deepEqual([record.id, record.destinationId, record.endpointIds], ['a:crm:u2', 'crm', ['u2']])
  await until(() => two.onWire.length === 1, 5_000, "the second URL's next goes out")
  two.answer('success', 'b:crm:u2')
  await until(() => committed() === 2, 5_000, 'b is finished')
  assert.equal(appended.length, 1)
})

test('calls queued in the order of a URL continue when the destination changes to any, each as one delivery', async (t) => {
  const { clients, call, committed, settings, crm } = await engine(t, {
    urls: 2,
    options: { deliverTo: 'every' },
  })
  const [one, two] = clients as [FakeClient, FakeClient]
  call('a')
  call('b')
  await until(() => one.onWire.length === 1 && two.onWire.length === 1, 5_000, 'sent')
  const any = { ...crm, options: editOptions(crm.options, { deliverTo: 'any' }) }
  settings.state = { ...settings.state, version: 2, destinations: new Map([['crm', any]]) }
  settings.change()
  call('c', { userId: 'u-2' })
  await until(() => one.onWire.length === 2 && two.onWire.length === 2, 5_000, 'c is sent')
  one.answer('success', 'a:crm:u1')
  two.answer('success', 'a:crm:u2')
  await until(() => one.onWire.length === 2 && two.onWire.length === 2, 5_000, 'b is sent')
  one.answer('success', 'b:crm:u1')
  one.answer('success', 'c:crm')
  two.answer('success', 'b:crm:u2')
  await until(() => committed() === 3, 5_000, 'all are finished')
  assert.deepEqual(one.sent, ['a:crm:u1', 'c:crm', 'b:crm:u1'])
})

test('calls queued in the order of a removed URL are skipped', async (t) => {
  const { clients, call, committed, settings, crm } = await engine(t, {
    urls: 2,
    options: { deliverTo: 'every' },
  })
  const [one, two] = clients as [FakeClient, FakeClient]
  call('a')
  call('b')
  await until(() => one.onWire.length === 1 && two.onWire.length === 1, 5_000, 'sent')
  const less = { ...crm, urls: crm.urls.slice(1) }
  settings.state = { ...settings.state, version: 2, destinations: new Map([['crm', less]]) }
  settings.change()
  one.answer('success', 'a:crm:u1')
  two.answer('success', 'a:crm:u2')
  await until(() => two.onWire.length === 1, 5_000, 'b is sent to the other')
  two.answer('success', 'b:crm:u2')
  await until(() => committed() === 2, 5_000, 'all are finished')
  assert.deepEqual(one.sent, ['a:crm:u1'])
})

test('violations are reported as they are found, and the last ones before the end', async (t) => {
  const { call, settings, told, committed, stop, running } = await engine(t)
  const web = { id: 'web', name: 'Web', events: {}, unknownEvents: 'block', removed: false } as const
  settings.state = {
    ...settings.state,
    sources: new Map([['shop', someSource('shop', { plan: 'web', planMode: 'block' })]]),
    plans: new Map([['web', web]]),
  }
  settings.change()
  const reported = () =>
    told.flatMap(({ violations }) => violations ?? []).map(({ messageIds }) => messageIds)
  call('first')
  await until(() => reported().length === 1, 5_000, 'reported')
  call('last')
  await until(() => committed() === 2, 5_000, 'committed')
  stop.abort()
  await running
  assert.deepEqual(reported(), [['first'], ['last']])
})
