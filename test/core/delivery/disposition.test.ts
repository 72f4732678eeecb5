import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  deferredBy,
  decide,
  expiryReason,
  hopTier,
  isExpired,
  retryAt,
  type Disposition,
  type RetryPolicy,
  type Round,
} from '../../../src/core/delivery/disposition.ts'
import {
  canRetry,
  deferredOutcome,
  isPutOff,
  outcomeKinds,
  type Outcome,
} from '../../../src/core/delivery/outcome.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute

const tiers = [
  ['10s', 10 * second],
  ['30s', 30 * second],
  ['1m', minute],
  ['5m', 5 * minute],
  ['15m', 15 * minute],
  ['30m', 30 * minute],
  ['1h', hour],
  ['2h', 2 * hour],
] as const
const policy: RetryPolicy = {
  tiers: tiers.map(([name, delayMs]) => ({ name, delayMs })),
  windowMs: 4 * hour,
}
const tierNamed = (name: string) => policy.tiers.find((tier) => tier.name === name)!

const outcome = (kind: Outcome['kind'], given: Partial<Outcome> = {}): Outcome => ({
  kind,
  status: null,
  retryAfterMs: null,
  body: null,
  durationMs: 3,
  detail: null,
  ...given,
})
const status = (code: number, retryAfterMs: number | null = null): Outcome => {
  const kind = code >= 500 ? 'status_5xx' : code === 429 ? 'status_429' : code === 410 ? 'gone' : 'status_4xx'
  return outcome(kind, { status: code, retryAfterMs })
}
const deferred = deferredOutcome('not tried')

const t0 = Date.UTC(2026, 0, 1)

/** The first round, at `t0`, unless `given` says otherwise; its endpoints are u1, u2, … */
function round(outcomes: readonly Outcome[], given: Partial<Round> = {}): Round {
  const tried = outcomes.some(({ kind }) => kind !== 'deferred')
  return {
    outcomes: outcomes.map((each, index) => ({ endpointId: `u${index + 1}`, outcome: each })),
    earlier: [],
    attempts: tried ? 1 : 0,
    timesScheduled: 0,
    firstAttemptAt: tried ? t0 : null,
    firstScheduledAt: null,
    now: t0,
    ...given,
  }
}

const retry = (tierName: string, endpointIds = ['u1'], given: object = {}): Disposition => ({
  kind: 'retry',
  tier: tierNamed(tierName),
  endpointIds,
  notBefore: null,
  deferred: false,
  ...given,
})
const dead = (reason: Extract<Disposition, { kind: 'dead_letter' }>['reason']): Disposition => ({
  kind: 'dead_letter',
  reason,
})

const oneUrl: [what: string, outcome: Outcome, then: Disposition][] = [
  ['2xx', outcome('success', { status: 204 }), { kind: 'delivered' }],
  ['no complete response in time', outcome('timeout'), retry('10s')],
  ['500', status(500), retry('10s')],
  ['503', status(503), retry('10s')],
  ['408', status(408), retry('10s')],
  ['425', status(425), retry('10s')],
  ['429', status(429), retry('10s')],
  ['refused, reset, no such name', outcome('network'), retry('10s')],
  ['410', status(410), dead('gone')],
  ['400', status(400), dead('rejected')],
  ['404', status(404), dead('rejected')],
  ['499', status(499), dead('rejected')],
  ['3xx', outcome('redirect', { status: 302 }), dead('redirect')],
  ['a certificate that is not trusted', outcome('tls'), retry('10s')],
  ['an address that is not allowed', outcome('blocked'), retry('10s')],
  ['a proxy that fails', outcome('proxy'), retry('10s')],
  ['deferred', deferred, retry('10s', ['u1'], { deferred: true })],
  ['no token', outcome('no_token'), retry('10s', ['u1'], { deferred: true })],
]
for (const [what, result, then] of oneUrl) {
  test(`one URL: ${what} → ${then.kind === 'dead_letter' ? `dead letter ${then.reason}` : then.kind}`, () => {
    assert.deepEqual(decide(round([result]), policy), then)
  })
}

test('several URLs: only those that can be retried are retried', () => {
  const results = [status(404), status(503), deferred, outcome('tls'), outcome('timeout')]
  assert.deepEqual(decide(round(results), policy), retry('10s', ['u2', 'u3', 'u4', 'u5']))
})

test('several URLs, all final: the reason is that of the first URL', () => {
  assert.deepEqual(decide(round([status(410), status(404)]), policy), dead('gone'))
  assert.deepEqual(decide(round([status(404), status(410)]), policy), dead('rejected'))
})

test('what could never be sent ends with its window by that reason, also if it was deferred at the last', () => {
  const end = { firstAttemptAt: t0 - policy.windowMs, firstScheduledAt: null, attempts: 3 }
  const earlier = (...kinds: Outcome['kind'][]) =>
    kinds.map((kind, index) => ({
      ...{ endpointId: `u${index + 1}`, kind, status: null, durationMs: 1, at: t0 - 1, detail: null },
    }))
  const reason = (results: readonly Outcome[], before: Outcome['kind'][] = []) => {
    const ended = decide(round(results, { ...end, earlier: earlier(...before) }), policy)
    return ended.kind === 'dead_letter' && ended.reason
  }
  assert.equal(reason([outcome('tls')]), 'tls')
  assert.equal(reason([outcome('blocked'), outcome('tls')]), 'blocked')
  assert.equal(reason([outcome('proxy')]), 'proxy')
  assert.equal(reason([outcome('proxy'), outcome('tls')]), 'proxy')
  assert.equal(reason([outcome('tls'), outcome('timeout')]), 'expired')
  assert.equal(reason([outcome('proxy'), outcome('timeout')]), 'expired')
  assert.equal(reason([outcome('timeout')], ['tls']), 'expired')
  assert.equal(reason([deferred], ['tls']), 'tls')
  assert.equal(reason([outcome('no_token')], ['timeout']), 'no_token')
  assert.equal(reason([deferred, outcome('tls')], ['network', 'network']), 'expired')
  // What is final does not count: it is not tried any more.
  assert.equal(reason([status(404), outcome('tls')]), 'tls')
  const delivery = { attempts: 1, endpointIds: ['u1'], outcomes: earlier('blocked') }
  assert.equal(expiryReason(delivery), 'blocked')
  assert.equal(expiryReason({ ...delivery, attempts: 0 }), 'not_attempted')
  assert.equal(expiryReason({ ...delivery, attempts: 0, outcomes: earlier('no_token') }), 'no_token')
  assert.equal(expiryReason({ ...delivery, outcomes: [] }), 'expired')
})

test('a round counts as deferred only if no URL was reached', () => {
  const both = decide(round([deferred, deferred]), policy)
  assert.deepEqual(both, retry('10s', ['u1', 'u2'], { deferred: true }))
  assert.deepEqual(decide(round([deferred, status(500)]), policy), retry('10s', ['u1', 'u2']))
})

test('each failed attempt goes to the next tier, and after the last tier to the last one again', () => {
  const wide = { ...policy, windowMs: 100 * hour }
  const names = Array.from({ length: 10 }, (_, before) => {
    // How often it was put off in between counts for nothing.
    const next = decide(round([status(500)], { attempts: before + 1, timesScheduled: before * 3 }), wide)
    return next.kind === 'retry' ? next.tier.name : next.kind
  })
  assert.deepEqual(names, [...tiers.map(([name]) => name), '2h', '2h'])
})

test('deliveries deferred by a slow endpoint return when it can take them, however often they were deferred before', () => {
  const slow = (waitMs: number) => deferredBy({ reason: 'slow', waitMs })
  const busy = (waitMs: number) => deferredBy({ reason: 'busy_key', waitMs })
  const down = deferredBy({ reason: 'breaker', waitMs: 2 * second })
  const tierOf = (outcomes: Outcome[], timesScheduled: number) => {
    const next = decide(round(outcomes, { timesScheduled, firstScheduledAt: t0 }), policy)
    return next.kind === 'retry' ? next.tier.name : next.kind
  }
  for (const timesScheduled of [0, 1, 7, 40]) {
    assert.equal(tierOf([slow(10 * second)], timesScheduled), '10s')
    assert.equal(tierOf([busy(minute)], timesScheduled), '1m')
    assert.equal(tierOf([down, slow(30 * second), busy(minute)], timesScheduled), '30s')
  }
  assert.equal(tierOf([down], 7), '2h', 'at one that is down it waits longer and longer')
})

const late = (left: number, given: Partial<Round> = {}): Round =>
  round([status(500)], { attempts: 8, timesScheduled: 7, now: t0 + 4 * hour - left, ...given })

const nearTheEnd: [left: number, then: Disposition][] = [
  [2 * hour, retry('2h')],
  [2 * hour - 1, retry('1h')],
  [hour - 1, retry('30m')],
  [29 * second, retry('10s')],
  [10 * second, retry('10s')],
  [10 * second - 1, dead('expired')],
  [0, dead('expired')],
  [-hour, dead('expired')],
]
for (const [left, then] of nearTheEnd) {
  test(`${left} ms before the window's end: ${then.kind === 'retry' ? then.tier.name : 'expired'}`, () => {
    assert.deepEqual(decide(late(left), policy), then)
  })
}

test('a delivery that was only ever deferred ends as not_attempted, timed from when it was first scheduled', () => {
  const given = { firstScheduledAt: t0, timesScheduled: 9, now: t0 + 4 * hour }
  assert.deepEqual(decide(round([deferred], given), policy), dead('not_attempted'))
  assert.deepEqual(
    decide(round([deferred], { ...given, attempts: 1, firstAttemptAt: t0 }), policy),
    dead('expired'),
  )
})

test('a first attempt after the first scheduling does not restart the window', () => {
  const given = {
    firstScheduledAt: t0,
    firstAttemptAt: t0 + 3 * hour,
    attempts: 8,
    timesScheduled: 7,
    now: t0 + 3 * hour,
  }
  assert.deepEqual(decide(round([status(500)], given), policy), retry('1h'))
  assert.deepEqual(decide(round([status(500)], { ...given, now: t0 + 4 * hour }), policy), dead('expired'))
})

test('Retry-After: the smallest tier that covers it, and no attempt before it has passed', () => {
  const cases: [asked: number, timesScheduled: number, tier: string][] = [
    [1, 0, '10s'],
    [10 * second, 0, '10s'],
    [11 * second, 0, '30s'],
    [20 * minute, 0, '30m'],
    // A wait shorter than the next tier's does not shorten that.
    [11 * second, 4, '15m'],
    [2 * hour, 0, '2h'],
    // Longer than the largest tier: it hops there again.
    [3 * hour, 0, '2h'],
  ]
  for (const [asked, timesScheduled, tier] of cases) {
    const next = decide(round([status(503, asked)], { attempts: timesScheduled + 1, timesScheduled }), policy)
    assert.deepEqual(next, retry(tier, ['u1'], { notBefore: t0 + asked }), `${asked} ms`)
  }
})

test('Retry-After is cut to the window', () => {
  const far = decide(round([status(503, 30 * hour)]), policy)
  assert.deepEqual(far, retry('2h', ['u1'], { notBefore: t0 + 4 * hour }))
  const now = t0 + 3 * hour
  const late = decide(round([status(429, Number.MAX_SAFE_INTEGER)], { now, timesScheduled: 7 }), policy)
  assert.deepEqual(late, retry('1h', ['u1'], { notBefore: t0 + 4 * hour }))
})

test('a retry that waits in memory honours Retry-After, and is made before its window ends', () => {
  const cases: [asked: number | null, now: number, at: number][] = [
    [null, t0, t0 + 10 * second],
    [3 * hour, t0, t0 + 3 * hour],
    [4 * hour - 1, t0, t0 + 4 * hour - 1],
    [30 * hour, t0, t0 + 4 * hour - 10 * second],
    [30 * hour, t0 + 4 * hour - 15 * second, t0 + 4 * hour - 5 * second],
  ]
  for (const [asked, now, at] of cases) {
    const given = round([status(503, asked)], { now, firstAttemptAt: t0 })
    const next = decide(given, policy)
    assert.ok(next.kind === 'retry')
    assert.equal(retryAt(next, given, policy), at, `${asked} ms`)
    assert.equal(isExpired(given, at, policy), false)
  }
})

test('of several URLs the longest Retry-After counts, and that of a final outcome does not', () => {
  const next = decide(round([status(503, 5 * second), status(429, 40 * second)]), policy)
  assert.deepEqual(next, retry('1m', ['u1', 'u2'], { notBefore: t0 + 40 * second }))
  assert.deepEqual(decide(round([status(404, hour), status(503)]), policy), retry('10s', ['u2']))
})

// Properties over any policy and any round.

const anyOutcome: fc.Arbitrary<Outcome> = fc
  .record({
    kind: fc.constantFrom(...outcomeKinds),
    code: fc.constantFrom(400, 404, 408, 422, 425),
    retryAfterMs: fc.option(fc.oneof(fc.integer({ min: 0, max: 6 * hour }), fc.maxSafeNat())),
  })
  .map(({ kind, code, retryAfterMs }) =>
    isPutOff(kind)
      ? { ...deferred, kind }
      : outcome(kind, { status: kind === 'status_4xx' ? code : null, retryAfterMs }),
  )
const anyPolicy: fc.Arbitrary<RetryPolicy> = fc.record({
  tiers: fc
    .uniqueArray(fc.integer({ min: 1, max: 7_200 }), { minLength: 1, maxLength: 8 })
    .map((delays) =>
      delays.sort((a, b) => a - b).map((delay) => ({ name: `${delay}s`, delayMs: delay * second })),
    ),
  windowMs: fc.integer({ min: 0, max: 4 * hour }),
})
const anyRound: fc.Arbitrary<Round> = fc
  .record({
    outcomes: fc.array(anyOutcome, { minLength: 1, maxLength: 5 }),
    earlierAttempts: fc.nat(20),
    timesScheduled: fc.nat(20),
    sinceAttempt: fc.nat(5 * hour),
    sinceScheduled: fc.nat(5 * hour),
  })
  .map(({ outcomes, earlierAttempts, timesScheduled, sinceAttempt, sinceScheduled }) => {
    const attempts = earlierAttempts + (outcomes.some(({ kind }) => !isPutOff(kind)) ? 1 : 0)
    return round(outcomes, {
      attempts,
      timesScheduled,
      firstAttemptAt: attempts > 0 ? t0 - (earlierAttempts > 0 ? sinceAttempt : 0) : null,
      firstScheduledAt: timesScheduled > 0 ? t0 - sinceScheduled : null,
    })
  })
const began = (given: Round): number =>
  Math.min(given.firstAttemptAt ?? given.now, given.firstScheduledAt ?? given.now)

test('one success makes the delivery delivered, whatever the others did; without one it is never delivered', () => {
  fc.assert(
    fc.property(anyRound, anyPolicy, (given, any) => {
      const success = given.outcomes.some((each) => each.outcome.kind === 'success')
      assert.equal(decide(given, any).kind === 'delivered', success)
    }),
  )
})

test('no tier overshoots the window, and no endpoint with a final outcome is retried', () => {
  fc.assert(
    fc.property(anyRound, anyPolicy, (given, any) => {
      const next = decide(given, any)
      if (next.kind !== 'retry') return
      const end = began(given) + any.windowMs
      assert.ok(given.now + next.tier.delayMs <= end)
      assert.ok(any.tiers.includes(next.tier))
      assert.ok(next.notBefore === null || next.notBefore <= end)
      const again = given.outcomes.filter((each) => canRetry(each.outcome)).map((each) => each.endpointId)
      assert.deepEqual(next.endpointIds, again)
      assert.ok(again.length > 0)
    }),
    { numRuns: 500 },
  )
})

test('a delivery expires only if no tier fits, and is not_attempted only if it was never attempted', () => {
  fc.assert(
    fc.property(anyRound, anyPolicy, (given, any) => {
      const next = decide(given, any)
      if (next.kind !== 'dead_letter') return
      const canBeRetried = given.outcomes.some((each) => canRetry(each.outcome))
      const endReasons = ['expired', 'not_attempted', 'tls', 'blocked', 'proxy', 'no_token']
      assert.equal(canBeRetried, endReasons.includes(next.reason))
      if (!canBeRetried) return
      if (next.reason === 'not_attempted') assert.equal(given.attempts, 0)
      else assert.ok(given.attempts > 0 || next.reason === 'no_token')
      assert.ok(given.now + any.tiers[0]!.delayMs > began(given) + any.windowMs)
    }),
    { numRuns: 500 },
  )
})

test('Retry-After is honoured: the tier covers it, or it is the largest that fits and the rest is spent hopping', () => {
  fc.assert(
    fc.property(anyRound, anyPolicy, (given, any) => {
      const next = decide(given, any)
      if (next.kind !== 'retry') return
      const end = began(given) + any.windowMs
      const asks = given.outcomes
        .filter((each) => canRetry(each.outcome))
        .map((each) => each.outcome.retryAfterMs ?? 0)
      const asked = Math.max(...asks)
      assert.equal(next.notBefore, asked > 0 ? Math.min(given.now + asked, end) : null)
      const covers = given.now + next.tier.delayMs >= (next.notBefore ?? 0)
      const largestThatFits = any.tiers.findLast((tier) => given.now + tier.delayMs <= end)
      assert.ok(covers || next.tier === largestThatFits)
    }),
    { numRuns: 500 },
  )
})

test('whatever its endpoints answer, a delivery ends within the window and no attempt is too early', () => {
  fc.assert(
    fc.property(
      anyPolicy,
      fc.array(fc.array(anyOutcome, { minLength: 3, maxLength: 3 }), { minLength: 1, maxLength: 40 }),
      (any, answers) => {
        let now = t0
        let attempts = 0
        let timesScheduled = 0
        let firstAttemptAt: number | null = null
        let firstScheduledAt: number | null = null
        let ids = ['u1', 'u2', 'u3']
        let rounds = 0
        for (;;) {
          assert.ok(++rounds < 20_000, 'it never ends')
          const results = answers[rounds % answers.length]!
          const outcomes = ids.map((endpointId, index) => ({ endpointId, outcome: results[index]! }))
          if (outcomes.some((each) => !isPutOff(each.outcome.kind))) {
            attempts++
            firstAttemptAt ??= now
          }
          const next = decide(
            { outcomes, earlier: [], attempts, timesScheduled, firstAttemptAt, firstScheduledAt, now },
            any,
          )
          if (next.kind !== 'retry') return
          timesScheduled++
          firstScheduledAt ??= now
          ids = next.endpointIds
          now += next.tier.delayMs
          const record = { notBefore: next.notBefore, firstAttemptAt, firstScheduledAt }
          for (let hop = hopTier(record, now, any); hop; hop = hopTier(record, now, any)) {
            assert.ok(now < next.notBefore!)
            timesScheduled++
            now += hop.delayMs
          }
          assert.ok(now <= t0 + any.windowMs, 'beyond the window')
          const early = next.notBefore !== null && now < next.notBefore
          assert.ok(!early || now + any.tiers[0]!.delayMs > t0 + any.windowMs, 'before its Retry-After')
        }
      },
    ),
    { numRuns: 200 },
  )
})

test('an endpoint that always fails gets attempts over the whole window, and then the delivery expires', () => {
  let now = t0
  const waits: string[] = []
  for (let timesScheduled = 0; ; timesScheduled++) {
    const next = decide(round([status(500)], { attempts: timesScheduled + 1, timesScheduled, now }), policy)
    if (next.kind === 'dead_letter') {
      assert.deepEqual(next, dead('expired'))
      break
    }
    assert.ok(next.kind === 'retry')
    waits.push(next.tier.name)
    now += next.tier.delayMs
  }
  assert.deepEqual(waits.slice(0, 8), ['10s', '30s', '1m', '5m', '15m', '30m', '1h', '2h'])
  assert.equal(now, t0 + 4 * hour)
})

test('hopping: only a wait that is not over and fits the window continues in a tier', () => {
  const times = { firstAttemptAt: t0, firstScheduledAt: t0 }
  const cases: [notBefore: number | null, now: number, tier: string | null][] = [
    [null, t0, null],
    [t0, t0, null],
    [t0 - 1, t0, null],
    [t0 + 1, t0, '10s'],
    [t0 + 20 * second, t0, '30s'],
    [t0 + 4 * hour, t0 + 2 * hour, '2h'],
    [t0 + 4 * hour, t0 + 2 * hour + 1, '1h'],
    [t0 + 4 * hour, t0 + 4 * hour - 9 * second, null],
  ]
  for (const [notBefore, now, tier] of cases) {
    assert.equal(hopTier({ ...times, notBefore }, now, policy)?.name ?? null, tier)
  }
})
