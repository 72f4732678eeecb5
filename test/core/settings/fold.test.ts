import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { CallType } from '../../../src/core/call/analytics-call.ts'
import type { OptionsEdit } from '../../../src/core/settings/destination-options.ts'
import type { NewSecret, SettingsCommand } from '../../../src/core/settings/commands.ts'
import { decide } from '../../../src/core/settings/decide.ts'
import {
  sharedSecretPlace,
  initialSettings,
  type SealedSecret,
  type SettingsAggregate,
} from '../../../src/core/settings/settings.ts'
import { evolve, type SingleEvent } from '../../../src/core/settings/events.ts'
import { SettingsFold, type AcceptedRecord, type SettingsRecord } from '../../../src/core/settings/fold.ts'

const newSecret = (text: string, fingerprint: string): NewSecret & { sealed: SealedSecret } => {
  const sealed = { keyId: 'k', iv: 'i', ciphertext: 'eA', tag: fingerprint, fingerprint }
  return { text, fingerprint, sealed, seal: () => sealed }
}
const secret = newSecret('x', 'f')

// Few ids, keys and URLs, so that commands meet one another.
/** Mostly valid fields: a command with one fault is refused as a whole. */
const mostly = <T>(good: T[], bad: T) =>
  fc.oneof({ weight: 30, arbitrary: fc.constantFrom(...good) }, { weight: 1, arbitrary: fc.constant(bad) })
const sourceId = mostly(['a', 'b', 'c'], 'No!')
const destinationId = fc.constantFrom('x', 'y', 'z')
const writeKey = mostly(['k1', 'k2', 'k3', 'k4'], 'not:one')
const url = mostly(['https://1.example/', 'https://2.example/', 'https://3.example/'], 'ftp://no/')
const urls = fc.uniqueArray(url, { minLength: 1, maxLength: 3 })
const headers = fc.array(
  fc.record({
    urlNumber: fc.integer({ min: 1, max: 2 }),
    name: mostly(['X-A', 'x-a', 'X-B'], 'Host'),
    value: fc.constantFrom(secret, null),
  }),
  { maxLength: 2 },
)
const others = ['a', 'b', 'c'].map((text) => newSecret(text, text))
const resealed = fc.constantFrom(secret, ...others).map(({ sealed }) => ({
  place: sharedSecretPlace('x'),
  from: sealed,
  to: { ...sealed, keyId: 'k2' },
}))
const sourceIds = fc.uniqueArray(sourceId, { minLength: 1, maxLength: 2 })
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const name = fc.constantFrom('One', 'Two')
const options: fc.Arbitrary<OptionsEdit> = fc.record({
  standardWebhooks: optional(fc.boolean()),
  types: optional(fc.constantFrom<(CallType[] | null)[]>(null, ['track', 'page'], ['page'], [])),
  events: optional(fc.constantFrom(null, ['A'], ['A', 'A'])),
  deliverTo: optional(fc.constantFrom('any' as const, 'every' as const)),
})
const command: fc.Arbitrary<SettingsCommand> = fc.oneof(
  fc.record({
    type: fc.constant('create_source' as const),
    id: sourceId,
    name,
    writeKey,
    enabled: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('update_source' as const),
    id: sourceId,
    name: optional(name),
    writeKey: optional(writeKey),
  }),
  fc.record({ type: fc.constantFrom('enable_source' as const, 'disable_source' as const), id: sourceId }),
  fc.record({
    type: fc.constant('create_destination' as const),
    id: destinationId,
    name,
    sourceIds,
    urls,
    headers,
    sharedSecret: fc.constantFrom(secret, null),
    options: optional(options),
    enabled: fc.boolean(),
  }),
  fc.record({
    type: fc.constant('update_destination' as const),
    id: destinationId,
    name: optional(name),
    sourceIds: optional(sourceIds),
    urls: optional(urls),
    headers: optional(headers),
    sharedSecret: fc.option(fc.constantFrom(secret, null), { nil: undefined, freq: 1 }),
    addSecret: optional(fc.constantFrom(secret, ...others)),
    removeSecrets: fc.option(fc.subarray(['f', 'a', 'b']), { nil: undefined, freq: 2 }),
    options: optional(options),
  }),
  fc.record({
    type: fc.constant('reseal_secrets' as const),
    id: destinationId,
    resealed: fc.array(resealed, { maxLength: 3 }),
  }),
  fc.record({
    type: fc.constantFrom('enable_destination' as const, 'disable_destination' as const),
    id: destinationId,
  }),
  fc.record({
    type: fc.constant('report_endpoint_gone' as const),
    destinationId,
    urlId: fc.constantFrom('u1', 'u2', 'u3'),
    at: fc.integer({ min: 1, max: 9 }),
  }),
)

/** The rules that hold in every state, whatever was asked. */
function assertValid(state: SettingsAggregate): void {
  const keys = [...state.sources.values()].map((source) => source.writeKey)
  assert.equal(new Set(keys).size, keys.length, 'write keys are unique')
  for (const destination of state.destinations.values()) {
    assert(destination.sourceIds.length > 0)
    for (const id of destination.sourceIds) assert(state.sources.has(id), `source ${id} dangles`)
    assert(destination.urls.length >= 1 && destination.urls.length <= 5)
    assert.equal(new Set(destination.urls.map(({ id }) => id)).size, destination.urls.length)
    assert.equal(new Set(destination.urls.map((endpoint) => endpoint.url)).size, destination.urls.length)
    const { sharedSecret, earlierSecret } = destination
    const { standardWebhooks, types, events } = destination.options
    assert(sharedSecret || !earlierSecret, 'an earlier secret stands beside a newer one')
    if (earlierSecret) assert.notEqual(earlierSecret.fingerprint, sharedSecret!.fingerprint)
    assert(sharedSecret || !standardWebhooks, 'Standard Webhooks are signed')
    assert(types?.length !== 0 && events?.length !== 0, 'a choice of nothing')
    assert(!events || new Set(events).size === events.length)
    assert(!events || !types || types.includes('track'))
    for (const endpoint of destination.urls) {
      assert.match(endpoint.url, /^https:/)
      const names = endpoint.headers.map((header) => header.name.toLowerCase())
      assert.equal(new Set(names).size, names.length)
      assert(!names.includes('host'))
    }
  }
}

test('property: no sequence of commands breaks an invariant, and no endpoint id ever means two URLs', () => {
  fc.assert(
    fc.property(fc.array(command, { maxLength: 60 }), (commands) => {
      let state: SettingsAggregate = initialSettings
      const meaning = new Map<string, string>()
      for (const next of commands) {
        const decision = decide(next, state)
        assert.deepEqual(decide(next, state), decision, 'the same decision on the same state')
        if (!decision.accepted) {
          assert(decision.faults.length > 0)
          continue
        }
        if (decision.event === null) continue
        const version = state.version
        state = evolve(state, decision.event)
        assert.equal(state.version, version + 1)
        assertValid(state)
        for (const destination of state.destinations.values())
          for (const endpoint of destination.urls) {
            const key = `${destination.id}/${endpoint.id}`
            assert.equal(meaning.get(key) ?? endpoint.url, endpoint.url)
            meaning.set(key, endpoint.url)
          }
      }
    }),
    { numRuns: 300 },
  )
})

/** Several writers at once, each deciding on the state of some moment; what they append, some of it twice. */
const appended: fc.Arbitrary<SettingsRecord[]> = fc
  .array(
    fc.record({
      command,
      behind: fc.nat({ max: 2 }),
      ahead: fc.nat({ max: 20 }),
      copies: fc.nat({ max: 2 }),
    }),
    { maxLength: 40 },
  )
  .map((moves) => {
    const log: SettingsRecord[] = []
    const states: SettingsAggregate[] = [initialSettings]
    const fold = new SettingsFold()
    moves.forEach(({ command: next, behind, ahead, copies }, index) => {
      const seen = states[Math.max(0, states.length - 1 - behind)]!
      const decision = decide(next, seen)
      if (!decision.accepted || decision.event === null) return
      // Now and then a version that lies ahead, as a log that lost its end would leave it.
      const expectedVersion = seen.version + (ahead === 20 ? 1 : 0)
      const record = { commandId: `c${index}`, expectedVersion, at: index, event: decision.event }
      for (let copy = 0; copy <= copies; copy++) {
        log.push(record)
        fold.take(record, 0)
        if (fold.state !== states.at(-1)) states.push(fold.state)
      }
      // A late copy, of the kind that a producer's retry leaves behind.
      if (copies === 2) log.push(log[Math.floor(log.length / 2)]!)
    })
    return log
  })

const foldAll = (records: readonly SettingsRecord[], fold = new SettingsFold()): SettingsFold => {
  // An event of something that does not exist is ignored: no writer of ours makes one at that version.
  for (const record of records) fold.take(record, 0)
  return fold
}

test('property: interleaved and duplicate appends of two writers fold to the state that the literal rule gives', () => {
  fc.assert(
    fc.property(appended, (records) => {
      // By the letter: every command id is remembered.
      const seen = new Set<string>()
      let state: SettingsAggregate = initialSettings
      for (const record of records) {
        if (seen.has(record.commandId)) continue
        seen.add(record.commandId)
        if (record.expectedVersion !== state.version) continue
        try {
          state = evolve(state, record.event)
        } catch {
          // As in foldAll.
        }
      }
      assert.deepEqual(foldAll(records).state, state)
    }),
    { numRuns: 300 },
  )
})

test('property: a reader that stops and starts anywhere reaches the same state, and duplicates change nothing', () => {
  fc.assert(
    fc.property(appended, fc.nat(), (records, cut) => {
      const whole = foldAll(records)
      const at = records.length === 0 ? 0 : cut % records.length
      assert.deepEqual(foldAll(records.slice(at), foldAll(records.slice(0, at))).state, whole.state)
      const doubled = records.flatMap((record) => [record, record])
      assert.deepEqual(foldAll(doubled).state, whole.state)
    }),
    { numRuns: 200 },
  )
})

test('of two events on one version the first counts and the second is stale', () => {
  const record = (commandId: string, expectedVersion: number, id: string): SettingsRecord => ({
    commandId,
    expectedVersion,
    at: 0,
    event: { type: 'source_created', source: { id, name: id, writeKey: id, enabled: true } },
  })
  const fold = new SettingsFold()
  assert.equal(fold.take(record('1', 0, 'a'), 0), 'accepted')
  assert.equal(fold.take(record('2', 0, 'b'), 0), 'stale')
  assert.deepEqual([...fold.state.sources.keys()], ['a'])
  assert.equal(fold.take(record('3', 2, 'c'), 0), 'stale')
  assert.equal(fold.take(record('4', 1, 'd'), 0), 'accepted')
  assert.equal(fold.take(record('3', 2, 'c'), 0), 'repeated')
  assert.equal(fold.state.version, 2)
})

test('a state never changes after it was returned, and its unchanged parts are not copied', () => {
  const fold = new SettingsFold()
  fold.take(sourceRecord(0), 0)
  const before = fold.state
  assert.equal(fold.state, before)
  fold.take(
    {
      ...sourceRecord(1),
      event: { type: 'computation_created', kind: 'audience', id: 'a', name: 'A', key: 'a', sourceId: 's0' },
    },
    0,
  )
  assert.equal(before.computations.size, 0)
  assert.equal(fold.state.computations.size, 1)
  assert.equal(fold.state.sources, before.sources)
})

test('all readers ignore an event about something that does not exist', () => {
  const fold = new SettingsFold()
  const gone = {
    ...sourceRecord(0),
    commandId: 'x',
    event: { type: 'source_enabled', id: 'nowhere' } as const,
  }
  assert.equal(fold.take(gone, 0), 'impossible')
  assert.equal(fold.take(sourceRecord(0), 0), 'accepted')
  assert.equal(fold.state.version, 1)
})

const sourceRecord = (index: number, request = ''): SettingsRecord => ({
  commandId: `c${index}${request}`,
  expectedVersion: index,
  at: 0,
  event: {
    type: 'source_created',
    source: { id: `s${index}`, name: 'S', writeKey: `k${index}`, enabled: true },
  },
})

test('the idempotency key of a request is forgotten after 40 days, with its event', () => {
  const day = 24 * 3_600_000
  const fold = new SettingsFold()
  fold.take(sourceRecord(0, '/key-a/asked'), 0)
  fold.take(sourceRecord(1, '/key-b/asked'), 39 * day)
  assert.equal(fold.request('key-a', 39 * day)?.request, 'asked')
  assert.equal(fold.request('key-a', 41 * day), undefined, 'whether or not anything was written since')
  fold.take(sourceRecord(2), 41 * day)
  assert.equal(fold.request('key-a', 0), undefined, 'nothing of it is kept')
  assert.equal(fold.request('key-b', 41 * day)?.event.type, 'source_created')
})

test('folding an event costs the same, however many came before', () => {
  const cpuMs = (count: number): number => {
    const records = Array.from({ length: count }, (_, index) => sourceRecord(index, `/key${index}/asked`))
    const fold = new SettingsFold()
    const began = process.cpuUsage()
    for (const record of records) fold.take(record, 0)
    const { user, system } = process.cpuUsage(began)
    assert.equal(fold.state.sources.size, count)
    return (user + system) / 1_000
  }
  cpuMs(2_000)
  const small = Math.min(...Array.from({ length: 5 }, () => cpuMs(2_000)))
  const large = Math.min(...Array.from({ length: 3 }, () => cpuMs(20_000)))
  // Linear is 10; where each event copied what there was, it was 100 and more.
  assert(large < 40 * Math.max(small, 1), `20,000 sources took ${large} ms, 2,000 took ${small} ms`)
})

test('an event of several counts as a whole, or not at all where one part is impossible', () => {
  const accepted: AcceptedRecord[] = []
  const fold = new SettingsFold((each) => accepted.push(each))
  fold.take(sourceRecord(0), 0)
  const before = fold.state
  const created = (index: number) => sourceRecord(index).event as SingleEvent
  const applied = (commandId: string, ...events: SingleEvent[]): SettingsRecord => ({
    ...{ commandId, expectedVersion: 1, at: 0, actor: 'ci' },
    event: { type: 'settings_applied', events },
  })
  const renamed: SingleEvent = { type: 'source_updated', id: 's0', name: 'New' }
  const destination: SingleEvent = {
    type: 'destination_created',
    destination: {
      ...{ id: 'd', name: 'D', type: 'Webhooks', sourceIds: ['s0'], sharedSecret: null, enabled: true },
      urls: [{ id: 'u7', url: 'https://a.example/', headers: [] }],
    },
  }
  const impossible: SingleEvent = { type: 'destination_disabled', id: 'nowhere' }
  assert.equal(fold.take(applied('a', renamed, created(1), destination, impossible), 5), 'impossible')
  assert.equal(fold.state, before)
  assert.deepEqual([...fold.state.sources.values()], [...before.sources.values()])

  const whole = applied('b', renamed, created(1), destination, { type: 'source_disabled', id: 's1' })
  assert.equal(fold.take(whole, 6), 'accepted')
  assert.equal(fold.version, 2)
  assert.deepEqual(fold.state, evolve(before, whole.event))
  assert.equal(
    fold.state.endpointsMade.get('d'),
    7,
    'nothing of the impossible one is left, and all of this one is there',
  )
  const { version, appendedAt, touched } = accepted.at(-1)!
  assert.deepEqual([accepted.length, version, appendedAt], [2, 1, 6])
  assert.deepEqual(
    touched.map(({ of, id, before: was }) => [of, id, was === undefined]),
    [
      ['sources', 's0', false],
      ['sources', 's1', true],
      ['destinations', 'd', true],
    ],
  )
  assert.equal((touched[1]!.after as { enabled: boolean }).enabled, false)
})
