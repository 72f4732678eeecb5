// Several forwarders in one simulated world: see bench/pacing.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flaky, hangs, healthy, queueing, type Refusal } from '../../bench/pacing/endpoint-models.ts'
import { simulate, type Figures, type Scenario } from '../../bench/pacing/simulation.ts'
import { DestinationLimits } from '../../src/forwarder/destination-limits.ts'
import { steadyClock } from '../../src/forwarder/steady-clock.ts'
import { bounds } from '../support/endpoint-life.ts'
import { quiet } from './fakes.ts'

const minute = 60_000
const policy = {
  tiers: bounds.returnDelaysMs.map((delayMs) => ({ name: `${delayMs}ms`, delayMs })),
  windowMs: 240 * minute,
}

/** Minutes of calls for one endpoint, of which all but the first sixth are counted. */
const share = (
  forwarders: number,
  load: number,
  capacity: number,
  refusal: Refusal | null = null,
  backlog = 0,
  minutes = 3,
  more: Partial<Scenario> = {},
): Figures =>
  simulate({
    ...{ forwarders, load, bounds, policy, backlog, isUneven: false, returnsAtMs: 0, seed: 1 },
    ...{ loadMs: minutes * minute, endMs: minutes * minute, countFromMs: (minutes / 6) * minute },
    endpoint: (random) => queueing(capacity, random, refusal),
    ...more,
  })

function deliversAll({ succeeded, attemptsPerCall }: Figures, capacity: number): void {
  assert.ok(succeeded >= 0.9 * capacity, `${succeeded} a second`)
  assert.ok(attemptsPerCall <= 1.2, `${attemptsPerCall} requests for each that was delivered`)
}

test('an endpoint that takes five a second gets no more at once than it can answer in time', () => {
  deliversAll(share(1, 20, 5, null, 0, 6), 5)
})

test('ten or a hundred that share an endpoint deliver as much as it can take, whatever comes', () => {
  for (const forwarders of [10, 100]) deliversAll(share(forwarders, 200, 50), 50)
})

test('a hundred with a backlog at the start overwhelm no endpoint that they share', () => {
  const { succeeded, peakInFlight } = share(100, 40, 50, null, 5_000)
  assert.ok(succeeded >= 0.9 * 45, `${succeeded} a second`)
  assert.ok(peakInFlight <= 500, `${peakInFlight} in flight`)
})

test('a hundred sharing an endpoint that answers 429 send it few requests in vain', () => {
  const { arrived, succeeded } = share(100, 200, 50, { queue: 50, status: 429, retryAfterMs: null })
  assert.ok(succeeded >= 0.95 * 50, `${succeeded} a second`)
  assert.ok(arrived <= 2.5 * 50, `${arrived} requests a second`)
})

test('a hundred sharing an endpoint of five a second take turns, and most of what they send is answered in time', () => {
  const { succeeded, attemptsPerCall } = share(100, 20, 5, null, 0, 9)
  assert.ok(succeeded >= 4, `${succeeded} a second`)
  assert.ok(attemptsPerCall <= 2, `${attemptsPerCall} requests for each that was delivered`)
})

/** A hundred at an endpoint of five a second, which get 20 calls a second. */
const atFive = (more: Partial<Scenario>, minutes = 9) => share(100, 20, 5, null, 0, minutes, more)

test('a hundred take turns as well where their clocks are a second apart', () => {
  const { succeeded } = atFive({ skewMs: 1_000 })
  assert.ok(succeeded >= 4, `${succeeded} a second`)
})

test('a hundred take turns as well while one of them is replaced every half minute', () => {
  const { succeeded } = atFive({ replacedEveryMs: 30_000 }, 18)
  assert.ok(succeeded >= 4, `${succeeded} a second`)
})

test('with --max-rate a hundred send an endpoint of five a second just that, and each call once', () => {
  const { succeeded, arrived, attemptsPerCall } = atFive({ maxRate: { count: 4.5, perMs: 1_000 } })
  assert.ok(succeeded >= 4.2 && arrived <= 4.55, `${succeeded} of ${arrived} a second`)
  assert.ok(attemptsPerCall <= 1.05, `${attemptsPerCall} requests for each that was delivered`)
})

test('an endpoint that answers every fifth call with 503 gets as many requests as it takes', () => {
  for (const forwarders of [1, 10]) {
    const { succeeded } = share(forwarders, 1_000, 0, null, 0, 1, {
      endpoint: (random) => flaky(1 / 5, random),
    })
    assert.ok(succeeded >= 0.9 * 1_000, `${forwarders}: ${succeeded} a second`)
  }
})

test('a hundred sharing an endpoint that hung for ten minutes deliver all of it soon once it answers again', () => {
  const returnsAtMs = 10 * minute
  const { drainedAfterS, succeeded } = simulate({
    ...{ forwarders: 100, load: 100, bounds, policy, backlog: 0, isUneven: false, returnsAtMs, seed: 1 },
    ...{ loadMs: 30 * minute, endMs: 60 * minute, countFromMs: returnsAtMs },
    endpoint: () => (now) => (now < returnsAtMs ? hangs(now) : healthy(now)),
  })
  assert.ok(succeeded >= 0.95 * 150, `${succeeded} a second: what comes, and what came`)
  assert.ok(drainedAfterS !== null && drainedAfterS <= 30 * 60, `${drainedAfterS} s`)
})

test('a hundred sharing an endpoint that answers 503 to what is too much send it few requests in vain', () => {
  const { arrived, succeeded } = share(100, 200, 50, { queue: 50, status: 503, retryAfterMs: null })
  assert.ok(succeeded >= 0.95 * 50, `${succeeded} a second`)
  assert.ok(arrived <= 2.5 * 50, `${arrived} requests a second`)
})

test('one alone at an endpoint that answers 503 to what is too much sends it few requests in vain', () => {
  for (const queue of [50, 10]) {
    const { arrived, succeeded } = share(1, 200, 50, { queue, status: 503, retryAfterMs: null })
    assert.ok(succeeded >= 0.95 * 50, `${succeeded} a second`)
    assert.ok(arrived <= 1.2 * 50, `${arrived} requests a second`)
  }
})

test('the part of its group that a process takes is that of its partitions, and one partition while it has none', async () => {
  let owned = 0
  let asked = 0
  const limits = new DestinationLimits({
    ownedPartitions: () => owned,
    allPartitions: () => {
      asked++
      return Promise.resolve(12)
    },
    log: quiet,
  })
  assert.equal(limits.share, 1, 'until it is known')
  const now = steadyClock.now()
  limits.tick(now)
  await Promise.resolve()
  assert.equal(limits.share, 1 / 12)
  owned = 3
  limits.tick(now + 250)
  assert.equal(limits.share, 1 / 4)
  limits.stop()
  limits.tick(now + 1_000_000)
  assert.equal(asked, 1, 'what is asked is closed by then')
})
