import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deadLetterReasons } from '../../../src/core/delivery/delivery.ts'
import { answerKinds, type AnswerKind } from '../load/answers.ts'
import { sideDestinations, slots } from '../load/destinations.ts'
import { Traffic, type RecordKind } from '../load/traffic.ts'
import { deliveryNumber, emptyColumns, type Evidence } from './evidence.ts'
import { Findings } from './findings.ts'
import { SideEvidence } from './side-evidence.ts'
import { judgeSide } from './side-verdict.ts'
import { judge, type VerdictInput } from './verdict.ts'

/** Times in ms. `to` is a destination. */
type Happened = { seq: number; to: string; at: number } & (
  | { answer: AnswerKind }
  | { tier: '1s' | 'strict'; attempts: number }
  | { dead: (typeof deadLetterReasons)[number] }
)

interface Given {
  /** All calls are of it. */
  source: string
  /** By number: when each came to Kafka, and when it was committed. */
  calls: Record<number, { at: number; committedAt?: number }>
  happened?: readonly Happened[]
  disablings?: readonly { from: number; to: number }[]
  injected?: VerdictInput['injected']
  /** When each record got another owner. */
  movedAt?: number
  /** Failed attempts of what is parked. */
  parkedFailures?: number
}

const trafficOf = (source: string) => new Traffic(1, { httpShare: 0, only: source })

/** The first number of such a record. */
function numberOf(source: string, kind: RecordKind): number {
  const traffic = trafficOf(source)
  let seq = 0
  while (traffic.kindOf(seq) !== kind) seq++
  return seq
}

/** What the verdict finds where this happened, and what it counts. */
function verdictOf(given: Given) {
  const { source, calls, happened = [], disablings = [], injected = [], movedAt = -Infinity } = given
  const { arrivals, retryRecords, deadLetters } = emptyColumns()
  for (const each of happened) {
    const { seq, to, at } = each
    const delivery = deliveryNumber(`m${seq}:${to}`)!
    const of = happened.filter((other) => other.seq === seq && other.to === to && other.at <= at)
    const firstAttemptAt = of.find((other) => 'answer' in other)?.at ?? -1
    const scheduled = of.filter((other) => 'tier' in other)
    const times = { firstAttemptAt, firstScheduledAt: scheduled[0]?.at ?? -1, partition: 0 }
    if ('answer' in each)
      arrivals.push({
        ...{ delivery, at, url: 0, readAt: at, sender: 1, body: 1 },
        answer: answerKinds.indexOf(each.answer),
      })
    else if ('tier' in each)
      retryRecords.push({
        ...{ ...times, delivery, at, scheduledAt: at, offset: retryRecords.length, notBefore: -1, urls: 1 },
        ...{ again: 0, topic: each.tier === 'strict' ? 0 : 1, attempts: each.attempts },
        timesScheduled: scheduled.length,
      })
    else
      deadLetters.push({
        ...{ ...times, delivery, at, failedAt: at, timesScheduled: scheduled.length, attempts: 1 },
        reason: deadLetterReasons.indexOf(each.dead),
      })
  }
  const traffic = trafficOf(source)
  const written: Evidence['calls'] = []
  const deadRecords: Evidence['deadRecords'] = new Map()
  for (const [number, { at }] of Object.entries(calls)) {
    const seq = Number(number)
    written[seq] = [{ partition: 0, offset: seq, at }]
    if (traffic.kindOf(seq) === 'poison') deadRecords.set(`0/${seq}`, ['undecodable'])
  }
  const evidence = {
    ...{ arrivals, retryRecords, deadLetters, calls: written, deadRecords },
    ...{ unexpectedDeadLetters: new Map(), wrongRequests: new Map(), strangers: [] },
    tierTopics: [
      { topic: 'strict', delayMs: 0, isStrict: true },
      { topic: '1s', delayMs: 1_000, isStrict: false },
    ],
    ledger: {
      ...{ fromTiersOf: () => 255, deliveredOf: () => 0, deadLettersOf: () => 1 },
      ...{ failedSince: () => false, failuresOf: () => given.parkedFailures ?? 0, hasEnded: () => false },
    },
  }
  const findings = new Findings()
  const input = {
    ...{ evidence, traffic, injected, moves: [], patience: 1 },
    watch: {
      rewinds: [],
      finishedBy: (topic: string, _partition: number, offset: number) =>
        (topic === 'calls' ? calls[offset]?.committedAt : undefined) ?? Infinity,
    },
    owners: {
      movedBetween: (_topic: string, _partition: number, from: number, to: number) =>
        from <= movedAt && movedAt <= to,
    },
    leaders: { eventsOf: () => [] },
    rig: { topics: { calls: 'calls', deadLetters: 'dead' }, windowMs: 30_000, disablings },
  }
  const tally = judge(input as unknown as VerdictInput, findings)
  return { tally, kinds: Object.keys(findings.toJSON()) }
}

const delivered: readonly Happened[] = [{ seq: 1, to: 'fifth', at: 100, answer: 'ok' }]
/** A call of a source with one destination, which took it. */
const calm = { source: 'calm', calls: { 1: { at: 50 } } }

test('whatever came to a destination of another source is a finding', () => {
  assert.deepEqual(verdictOf({ ...calm, happened: delivered }).kinds, [])
  const strays: Happened[] = [
    { seq: 1, to: 'steady', at: 100, answer: 'ok' },
    { seq: 1, to: 'steady', at: 100, answer: 'status503' },
    { seq: 1, to: 'steady', at: 100, tier: '1s', attempts: 1 },
    { seq: 1, to: 'steady', at: 100, dead: 'rejected' },
  ]
  for (const stray of strays)
    assert.deepEqual(verdictOf({ ...calm, happened: [...delivered, stray] }).kinds, ['wrong destinations'])
})

test('what came of a call that does not lie in Kafka, or of a record that is no call, is a finding', () => {
  const poison = numberOf('calm', 'poison')
  const calls = { ...calm.calls, [poison]: { at: 50 } }
  assert.deepEqual(verdictOf({ ...calm, calls, happened: delivered }).kinds, [])
  for (const seq of [0, 1_000_000, poison]) {
    const happened: Happened[] = [...delivered, { seq, to: 'fifth', at: 100, answer: 'ok' }]
    assert.deepEqual(verdictOf({ ...calm, calls, happened }).kinds, ['wrong destinations'])
  }
})

test('no call has the delivery of another kind of call, at either kind of destination', () => {
  assert.equal(deliveryNumber('m5:steady'), 5 * slots.length + slots.findIndex((s) => s.suffix === ':steady'))
  for (const id of ['s5:steady', '5:steady', 'm:steady', 'm5:side-healthy'])
    assert.equal(deliveryNumber(id), null, id)
  const kindsWith = (add: (evidence: SideEvidence) => void) => {
    const evidence = new SideEvidence()
    evidence.calls.push({ messageId: 's1', type: 'track', userId: 'u', traits: null, place: 'c/0/0', at: 1 })
    for (const { id } of sideDestinations) evidence.addArrival(`s1:${id}`, 'ok')
    add(evidence)
    const notes = {
      ...{ calls: new Map(), syncs: [], members: new Set<string>(), deletions: [], names: [], replay: null },
      holds: { begunAt: 0, pauses: [], again: null, replays: [] },
    }
    const findings = new Findings()
    judgeSide({ notes, settings: [], evidence }, findings)
    return Object.keys(findings.toJSON())
  }
  assert.deepEqual(
    kindsWith((evidence) => evidence.addRetry('s1:side-flaky', 'o', '1s/0/0', false)),
    [],
  )
  for (const id of ['m5:side-healthy', 's1:steady']) {
    const strays: ((evidence: SideEvidence) => void)[] = [
      (evidence) => evidence.addArrival(id, 'ok'),
      (evidence) => evidence.addRetry(id, 'o', '1s/0/0', false),
      (evidence) => evidence.addDeadLetter(id, 'expired', 1),
    ]
    for (const add of strays) assert.deepEqual(kindsWith(add), ['strangers'], id)
  }
})

test('a request that goes out again before its retry was scheduled is a finding, unless its record moved', () => {
  const at = (times: readonly (readonly [at: number, what: AnswerKind | 'retry'])[]): Happened[] =>
    times.map(([at, what]) =>
      what === 'retry'
        ? { seq: 1, to: 'fifth', at, tier: '1s', attempts: 1 }
        : { seq: 1, to: 'fifth', at, answer: what },
    )
  const kinds = (happened: readonly Happened[], movedAt?: number) =>
    verdictOf({ ...calm, happened, ...(movedAt !== undefined && { movedAt }) }).kinds
  const inTime = [
    [110, 'retry'],
    [1_200, 'ok'],
  ] as const
  assert.deepEqual(kinds(at([[100, 'status503'], ...inTime])), [])
  const atOnce = [
    at([
      [100, 'status503'],
      [105, 'ok'],
    ]),
    at([[100, 'status503'], [105, 'status503'], ...inTime]),
  ]
  for (const each of atOnce) {
    assert.deepEqual(kinds(each), ['more requests than rounds'])
    assert.deepEqual(kinds(each, 102), [])
    assert.deepEqual(kinds(each, -10_000), ['more requests than rounds'])
  }
  // What came of the last one its owner could not record any more, and the next owner gave it up.
  const givenUp: Happened[] = [
    ...at([
      [100, 'status503'],
      [110, 'retry'],
      [1_200, 'status503'],
    ]),
    { seq: 1, to: 'fifth', at: 31_000, dead: 'expired' },
  ]
  assert.ok(kinds(givenUp).includes('more requests than rounds'))
  assert.ok(!kinds(givenUp, 8_000).includes('more requests than rounds'))
  // Its connection ended before an answer: the same attempt, on another one.
  assert.deepEqual(kinds(at([[100, 'reset'], [105, 'status503'], ...inTime])), [])
  assert.deepEqual(kinds(at([[100, 'reset'], [105, 'status503'], [110, 'status503'], ...inTime])), [
    'more requests than rounds',
  ])
})

test('a refused token, and a refused batch, excuse a request more each, and nothing else does', () => {
  const isFound = (to: string, kinds: readonly AnswerKind[]) =>
    verdictOf({
      ...{ source: 'odd', calls: { 1: { at: 50 } } },
      happened: kinds.map((answer, index) => ({ seq: 1, to, at: 100 + index, answer })),
    }).kinds.includes('more requests than rounds')
  assert.equal(isFound('login', ['status401', 'ok']), false)
  assert.equal(isFound('login', ['status401', 'status503', 'ok']), true)
  assert.equal(isFound('batched-picky', ['status400', 'status400', 'ok']), false)
  assert.equal(isFound('batched-picky', ['status400', 'status503', 'ok']), true)
  assert.equal(isFound('victim', ['status400', 'ok']), true)
})

test('of what is parked the ledger says how many rounds it had', () => {
  const kinds = (parkedFailures: number) =>
    verdictOf({
      ...{ source: 'ordered', calls: { 1: { at: 50 } }, parkedFailures },
      happened: [
        { seq: 1, to: 'strict', at: 100, answer: 'status503' },
        { seq: 1, to: 'strict', at: 110, tier: 'strict', attempts: 1 },
        { seq: 1, to: 'strict', at: 1_200, answer: 'status503' },
        { seq: 1, to: 'strict', at: 2_300, answer: 'ok' },
      ],
    }).kinds
  assert.deepEqual(kinds(1), [])
  assert.deepEqual(kinds(0), ['more requests than rounds'])
})

test('a call is skipped only while its destination is disabled, as far as a forwarder can know', () => {
  const skipped = (call: { at: number; committedAt: number }, rest: Partial<Given> = {}) => {
    const disablings = [{ from: 1_500, to: 4_000 }]
    const { tally, kinds } = verdictOf({ source: 'toggled', calls: { 1: call }, disablings, ...rest })
    assert.deepEqual(kinds, tally.skipped === 1 ? [] : ['lost'])
    return tally.skipped === 1
  }
  assert.equal(skipped({ at: 1_000, committedAt: 2_000 }), true)
  assert.equal(skipped({ at: 4_500, committedAt: 5_000 }), true)
  assert.equal(skipped({ at: 1_000, committedAt: 1_400 }), false)
  assert.equal(skipped({ at: 1_000, committedAt: 2_000 }, { disablings: [] }), false)
  const late = { at: 100_000, committedAt: 100_500 }
  assert.equal(skipped(late), false)
  const broken = { kind: 'broker-killed', detail: '', step: '', from: 5_000, to: 90_000 } as const
  assert.equal(skipped(late, { injected: [broken] }), true)
  // It was put off, and came due then.
  const happened: Happened[] = [{ seq: 1, to: 'toggled', at: 1_100, tier: '1s', attempts: 0 }]
  assert.equal(skipped({ at: 1_000, committedAt: 1_400 }, { happened }), true)
  const putOff: Happened[] = [{ seq: 1, to: 'toggled', at: 101_000, tier: '1s', attempts: 0 }]
  assert.equal(skipped({ at: 1_000, committedAt: 101_400 }, { happened: putOff }), false)
})
