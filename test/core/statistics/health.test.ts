import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { BreakerPhase } from '../../../src/core/pacing/breaker.ts'
import {
  healthOf,
  healthText,
  isWell,
  type HealthFacts,
  type JudgedOutcomes,
} from '../../../src/core/statistics/health.ts'
import { judgedOutcomesOf, urlOutcomesOf, badSince } from '../../../src/core/statistics/judged-outcomes.ts'

const now = 1_000_000_000

const nothing: JudgedOutcomes = { attempts: 0, succeeded: 0, busy: 0, delivered: 0, deadLettered: 0 }
const arrived: JudgedOutcomes = { ...nothing, attempts: 10, succeeded: 10, delivered: 10 }

const url = (breaker: BreakerPhase | null = 'closed', pausedUntil: number | null = null) => ({
  isGone: false,
  breaker,
  pausedUntil,
  isWithoutToken: false,
})
const goneUrl = { isGone: true, breaker: null, pausedUntil: null, isWithoutToken: false }
const withoutToken = { ...url(), isWithoutToken: true }

const facts = (given: Partial<HealthFacts>): HealthFacts => ({
  ...{ enabled: true, isPaused: false, urls: [url()], reading: 'all', recent: arrived, now },
  ...given,
})

const table: [name: string, given: Partial<HealthFacts>, text: string, why: string | null][] = [
  ['everything arrives', {}, 'delivering', null],
  ['nothing was sent', { recent: nothing }, 'idle', null],
  ['it was never sent to', { recent: nothing, urls: [url(null)] }, 'idle', null],
  ['one of ten fails', { recent: { ...arrived, succeeded: 9 } }, 'delivering', null],
  ['more than one of ten fails', { recent: { ...arrived, attempts: 12 } }, 'degraded 83 %', 'few_successes'],
  [
    'deliveries are lost though attempts succeed',
    { recent: { ...arrived, deadLettered: 10 } },
    'degraded 50 %',
    'few_successes',
  ],
  [
    'nearly nine of ten succeed',
    { recent: { ...nothing, attempts: 1_000, succeeded: 899 } },
    'degraded 89 %',
    'few_successes',
  ],
  ['no attempt succeeds', { recent: { ...nothing, attempts: 1 } }, 'failing', 'no_success'],
  [
    'all become dead letters without an attempt',
    { recent: { ...nothing, deadLettered: 3 } },
    'failing',
    'no_success',
  ],
  [
    'it answers nothing but 429',
    { recent: { ...nothing, attempts: 9, busy: 9 } },
    'asked to wait',
    'rate_limited',
  ],
  [
    'it answers 429 to half',
    { recent: { ...nothing, attempts: 10, succeeded: 5, busy: 4, delivered: 5 } },
    'asked to wait',
    'rate_limited',
  ],
  [
    'a few 429 are among many errors',
    { recent: { ...nothing, attempts: 9, busy: 1 } },
    'failing',
    'no_success',
  ],
  [
    'it asks for minutes',
    { recent: nothing, urls: [url('paused', now + 120_000)] },
    'asked to wait',
    'rate_limited',
  ],
  ['it asks for a second', { urls: [url('paused', now + 1_000)] }, 'delivering', null],
  ['its breaker is open', { urls: [url('open')] }, 'down', null],
  ['its breaker lets a probe through', { urls: [url('half_open')] }, 'down', null],
  ['one of two URLs is down', { urls: [url('open'), url()] }, 'degraded', 'some_urls'],
  ['one of two URLs is gone', { urls: [goneUrl, url()] }, 'degraded', 'some_urls'],
  ['the URL that is not gone is down', { urls: [goneUrl, url('open')] }, 'down', null],
  ['its login fails', { urls: [withoutToken, withoutToken] }, 'down', 'no_token'],
  ['its login fails, and one of its URLs is gone', { urls: [goneUrl, withoutToken] }, 'down', 'no_token'],
  ['all URLs are gone', { urls: [goneUrl, goneUrl] }, 'gone', null],
  ['no forwarder lives', { reading: 'no_forwarder' }, 'not known', 'no_forwarder'],
  [
    'no forwarder lives, and its breaker was open',
    { reading: 'no_forwarder', urls: [url('open')] },
    'not known',
    'no_forwarder',
  ],
  ['forwarders live and read nothing', { reading: 'nothing' }, 'not known', 'nothing_read'],
  ['the ledger cannot be read', { reading: 'unknown' }, 'not known', 'ledger_unread'],
  ['some partitions are read by nobody', { reading: 'some' }, 'degraded', 'partitions_unread'],
  ['it is paused', { isPaused: true, reading: 'no_forwarder' }, 'held', null],
  ['it is paused and gone', { isPaused: true, urls: [goneUrl] }, 'held', null],
  ['it is disabled', { enabled: false, isPaused: true }, 'disabled', null],
]

test('each word is said where its facts hold', () => {
  for (const [name, given, text, why] of table) {
    const health = healthOf(facts(given))
    assert.deepEqual([healthText(health), health.why], [text, why], name)
  }
})

test('a destination is delivering only where something arrives, a forwarder reads all, and no URL is down', () => {
  const count = fc.nat(20)
  // Else hardly any destination would be well.
  const mostly = <T>(usual: T, ...others: T[]) =>
    fc.oneof(
      { weight: 4, arbitrary: fc.constant(usual) },
      { weight: 1, arbitrary: fc.constantFrom(...others) },
    )
  let delivering = 0
  const given = fc.record({
    enabled: mostly(true, false),
    isPaused: mostly(false, true),
    urls: fc.array(
      fc.record({
        isGone: mostly(false, true),
        breaker: mostly<BreakerPhase | null>('closed', 'open', 'half_open', 'ramp', 'paused', null),
        pausedUntil: fc.constantFrom(null, now + 5_000, now + 500_000),
        isWithoutToken: mostly(false, true),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    reading: mostly<HealthFacts['reading']>('all', 'some', 'nothing', 'no_forwarder', 'unknown'),
    recent: fc
      .record({
        succeeded: count,
        failed: mostly(0, 1, 5),
        busy: count,
        delivered: count,
        deadLettered: mostly(0, 1, 5),
      })
      .map(({ failed, ...rest }) => ({
        ...rest,
        attempts: rest.succeeded + failed,
        busy: Math.min(rest.busy, failed),
      })),
  })
  fc.assert(
    fc.property(given, (some) => {
      const health = healthOf({ ...some, now })
      if (health.word !== 'delivering') return
      delivering++
      assert.equal(isWell(health), true)
      assert.deepEqual([some.enabled, some.isPaused, some.reading], [true, false, 'all'])
      assert.ok(
        some.urls.every(
          ({ isGone, breaker, isWithoutToken }) =>
            !isGone && !isWithoutToken && breaker !== 'open' && breaker !== 'half_open',
        ),
      )
      const { succeeded, attempts, delivered, deadLettered } = some.recent
      assert.ok(succeeded + delivered > 0)
      assert.ok(succeeded >= attempts * 0.9 && delivered >= (delivered + deadLettered) * 0.9)
    }),
    { numRuns: 2_000 },
  )
  assert.ok(delivering > 50, `${delivering} of 2,000`)
})

test('outcomes are counted over all URLs, and of one URL by itself', () => {
  const counts = {
    'end/u1/success': 3,
    'end/u1/timeout': 1,
    'end/u2/status_429': 2,
    delivered: 3,
    deadLettered: 1,
  }
  assert.deepEqual(judgedOutcomesOf(counts), {
    attempts: 6,
    succeeded: 3,
    busy: 2,
    delivered: 3,
    deadLettered: 1,
  })
  assert.deepEqual(urlOutcomesOf(counts, 'u2'), { ...nothing, attempts: 2, busy: 2 })
  assert.deepEqual(urlOutcomesOf(counts, 'u3'), nothing)
})

test('trouble has been there since the first bad minute behind the last ten that were well', () => {
  const minute = (at: number, succeeded: number, failed: number) => ({
    at: at * 60_000,
    counts: { 'end/u1/success': succeeded, 'end/u1/timeout': failed },
  })
  const well = [minute(0, 50, 0), minute(1, 50, 0)]
  const since = (...minutes: ReturnType<typeof minute>[]) => {
    const found = badSince([...well, ...minutes])
    return found === null ? null : found / 60_000
  }
  // After a minute of failures, more than nine of ten of the last ten minutes were still well.
  assert.equal(since(minute(2, 0, 1), minute(3, 0, 40), minute(14, 0, 1)), 3)
  // A good minute among bad ones ends nothing.
  assert.equal(since(minute(3, 0, 40), minute(13, 1, 40), minute(14, 1, 40)), 3)
  assert.equal(since(minute(3, 0, 90), minute(20, 50, 0), minute(21, 0, 90)), 21)
  assert.equal(badSince([minute(3, 0, 90), minute(4, 0, 90)]), null, 'it was bad before')
})
