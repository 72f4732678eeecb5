import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import {
  ConcurrencyLimit,
  limitTransitions,
  type LimitPhase,
} from '../../../src/core/pacing/concurrency-limit.ts'

const bounds = { min: 1, start: 64, max: 2_048 }

/** A reproducible source of randomness (mulberry32). */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

/** How long a request takes that comes when `open` are in flight, itself included; `at` in ms. */
type Receiver = (open: number, at: number) => number

/**
 * A sender that always has work, on a virtual clock. `cpuPerRequest` is what this process needs for each, in ms: more
 * than one core has is not to be had.
 */
function simulate(limit: ConcurrencyLimit, receiver: Receiver, forMs: number, cpuPerRequest = 0.05) {
  const ends: { at: number; sentAt: number }[] = []
  let cpuFreeAt = 0
  const done: number[] = []
  const limits: number[] = []
  let at = 0
  while (at < forMs) {
    while (ends.length < limit.value) {
      cpuFreeAt = Math.max(cpuFreeAt, at) + cpuPerRequest
      const end = { at: cpuFreeAt + receiver(ends.length + 1, at), sentAt: at }
      let place = ends.length
      while (place > 0 && ends[place - 1]!.at > end.at) place--
      ends.splice(place, 0, end)
    }
    const next = ends.shift()!
    at = next.at
    const took = next.at - next.sentAt
    if (took > 5_000) limit.overloaded(next.sentAt, at)
    else limit.answered(took, ends.length + 1, at)
    done.push(at)
    limits.push(limit.value)
  }
  const secondHalf = done.filter((each) => each >= forMs / 2)
  return {
    perSecond: (secondHalf.length / (forMs / 2)) * 1_000,
    limit: limits.at(-1)!,
    min: limits.reduce((min, each) => Math.min(min, each)),
    max: limits.reduce((max, each) => Math.max(max, each)),
    at: (ms: number) => limits[done.findIndex((each) => each >= ms)]!,
  }
}

test('a receiver that takes 100 ms at any concurrency is driven as fast as one core can send', () => {
  const wavers = random(1)
  const best = 1_000 / 0.055
  const result = simulate(new ConcurrencyLimit(bounds), () => 100 + 5 * wavers(), 20_000, 0.055)
  assert.ok(result.perSecond >= 0.95 * best, `${result.perSecond} of ${best} a second`)
  assert.ok(result.at(3_000) >= 1_024, `${result.at(3_000)} at once after three seconds`)
})

test('a receiver that answers at once stays at the starting limit, because more would only queue', () => {
  const result = simulate(new ConcurrencyLimit(bounds), () => 0.2, 60_000)
  assert.ok(result.limit <= 80 && result.max <= 160, `${result.limit}, at most ${result.max}`)
  assert.ok(result.perSecond >= 0.95 * 20_000)
})

test('a receiver with N workers gets about N requests at once, or the starting limit', () => {
  for (const workers of [4, 100, 300, 1_000]) {
    const wavers = random(workers)
    const service = 50
    const receiver: Receiver = (open) => Math.max(service, (open / workers) * service) + 5 * wavers()
    const result = simulate(new ConcurrencyLimit(bounds), receiver, 60_000, 0.01)
    const best = (workers / (service + 2.5)) * 1_000
    assert.ok(result.perSecond >= 0.9 * best, `${workers} workers: ${result.perSecond} of ${best} a second`)
    assert.ok(result.limit <= Math.max(workers * 1.6, 80), `${workers} workers: ${result.limit} at once`)
  }
})

test('a receiver that becomes slower is not starved, and one that becomes faster is discovered', () => {
  const changing: Receiver = (_, at) => (at < 20_000 ? 10 : at < 120_000 ? 100 : 20)
  const limit = new ConcurrencyLimit(bounds)
  const result = simulate(limit, changing, 200_000, 0.2)
  assert.ok(result.min >= 32, `${result.min}`)
  assert.ok(
    result.at(119_000) >= 400,
    `${result.at(119_000)} at once at 100 ms, of 500 that one core can send`,
  )
  assert.ok(result.perSecond >= 0.9 * 5_000, `${result.perSecond}`)
})

test('timeouts halve the limit once for all requests in flight, even below the start, and success brings it back', () => {
  const limit = new ConcurrencyLimit(bounds)
  for (let index = 0; index < 64; index++) limit.overloaded(1_000 + index, 6_000 + index)
  assert.equal(limit.value, 32)
  for (let sentAt = 6_100, left = 20; left > 0; left--, sentAt += 6_000)
    limit.overloaded(sentAt, sentAt + 5_000)
  assert.equal(limit.value, bounds.min)
  let windows = 0
  for (let at = 200_000; limit.value < bounds.start; at += 150, windows++) {
    for (let left = limit.value; left > 0; left--) limit.answered(100, limit.value, at)
  }
  assert.ok(windows <= 20, `${windows} windows`)
})

test('after overload the limit returns by itself to half of what was too much, and to its start in time', () => {
  const limit = new ConcurrencyLimit(bounds)
  limit.overloaded(0, 5_000)
  assert.equal(limit.value, 32)
  limit.restart(5_100)
  assert.deepEqual([limit.value, limit.phase], [32, 'steering'], 'also after its breaker was open')
  // Twice as many in flight would bring round trips near the time-out, so nothing is added.
  let at = 10_000
  const answer = (tookMs: number, windows: number) => {
    for (let left = windows; left > 0; left--, at += 1_500)
      for (let each = 16; each > 0; each--) limit.answered(tookMs, limit.value, at)
  }
  answer(100, 1)
  answer(1_300, 200)
  assert.ok(limit.value <= 40, `${limit.value}`)
  limit.restart(at + 31_000)
  assert.deepEqual([limit.value, limit.phase], [64, 'rising'], 'half a minute later')
})

test('an endpoint that once stood still is back at its start in two minutes, though the machine is busy', () => {
  const limit = new ConcurrencyLimit(bounds)
  const answer = (tookMs: (at: number) => number, from: number, to: number) => {
    for (let at = from; at < to; at += 10) limit.answered(tookMs(at), limit.value, at)
  }
  answer(() => 10, 0, 1_000)
  for (let sentAt = 1_000; limit.value > 4; sentAt += 5_500) limit.overloaded(sentAt, sentAt + 5_000)
  // Every fifth second is a quiet one, so that the others are queueing to all appearances.
  answer((at) => (Math.floor(at / 1_000) % 5 === 0 ? 10 : 150), 60_000, 180_000)
  assert.ok(limit.value >= bounds.start, `${limit.value}`)
})

test('where one request at a time is too many there are rests in between, which each success halves', () => {
  const limit = new ConcurrencyLimit({ ...bounds, start: 1 })
  const refused = (at: number) => limit.refused(at, at, true)
  refused(1_000)
  assert.deepEqual([limit.allows(0, 1_099), limit.allows(0, 1_100)], [false, true])
  for (let left = 20; left > 0; left--) refused(2_000)
  assert.deepEqual([limit.allows(0, 11_999), limit.allows(0, 12_000)], [false, true], 'at most ten seconds')
  limit.answered(50, 1, 70_000)
  assert.deepEqual([limit.allows(0, 74_999), limit.allows(0, 75_000)], [false, true])
  for (let left = 10; left > 0; left--) limit.answered(50, 1, 100_000)
  assert.ok(limit.allows(0, 100_000))
  const four = new ConcurrencyLimit({ ...bounds, start: 4 })
  four.refused(1_000, 1_000, true)
  assert.deepEqual([four.value, four.allows(1, 1_000)], [2, true], 'fewer at a time can be had')
  const asked = new ConcurrencyLimit({ ...bounds, start: 1 })
  asked.refused(1_000, 1_000, false)
  assert.ok(asked.allows(0, 1_000), 'it asked for a pause, which is one')
})

test('503 lower the limit where they are half of the answers, down to where the group starts, and not where they are a fifth', () => {
  const after = (every: number) => {
    const limit = new ConcurrencyLimit(bounds)
    let at = 0
    for (let each = 1; each <= 8_000; each++, at += 5)
      if (each > 4_000 && each % every === 0) limit.unavailable(at)
      else limit.answered(50, limit.value, at)
    return limit.value
  }
  for (const every of [20, 5]) assert.ok(after(every) >= 1_024, `every ${every}th: ${after(every)}`)
  assert.ok(after(2) >= bounds.start && after(2) <= 2 * bounds.start, `${after(2)}`)
})

test('rests after a 503 leave a whole group ten requests a second, for it may be ill rather than busy', () => {
  for (const [share, restMs] of [
    [1, 100],
    [1 / 10, 1_000],
    [1 / 1_000, 10_000],
  ] as const) {
    const limit = new ConcurrencyLimit({ ...bounds, start: 1 }, { share, member: 1 })
    for (let left = 20; left > 0; left--) limit.unavailable(0)
    assert.deepEqual([limit.allows(0, restMs - 1), limit.allows(0, restMs)], [false, true])
  }
})

test('members of a group whose limit is one take turns after time-outs, as many as those brought it down', () => {
  const seconds = 600
  const inTurns = (limit: ConcurrencyLimit, isProbe = false) =>
    Array.from({ length: seconds }, (_, second) => limit.allows(0, 100_000 + second * 1_000, isProbe))
  const shareOf = (turns: readonly boolean[]) => turns.filter(Boolean).length / seconds
  const members = Array.from(
    { length: 100 },
    (_, index) => new ConcurrencyLimit(bounds, { share: 1 / 100, member: index * 7_919 }),
  )
  let sentAt = 0
  const timeOut = () => {
    for (const limit of members) limit.overloaded(sentAt, sentAt + 500)
    sentAt += 1_000
  }
  const mean = () => members.reduce((sum, limit) => sum + shareOf(inTurns(limit)), 0) / members.length
  assert.equal(mean(), 1)
  timeOut()
  assert.ok(Math.abs(mean() - 1 / 2) < 0.02, `${mean()}`)
  timeOut()
  assert.ok(Math.abs(mean() - 1 / 4) < 0.02, `${mean()}`)
  const atOnce = Array.from(
    { length: seconds },
    (_, second) => members.filter((limit) => limit.allows(0, 100_000 + second * 1_000)).length,
  )
  assert.ok(Math.max(...atOnce) <= 50, `${Math.max(...atOnce)} of 25 on average at once`)
  for (let left = 10; left > 0; left--) timeOut()
  assert.ok(Math.abs(mean() - 1 / 30) < 0.01, `${mean()}: one of thirty in any case`)
  const [one] = members
  assert.ok(Math.abs(one!.turns - 1 / 30) < 0.01, `${one!.turns} is said`)
  assert.deepEqual([one!.value, one!.isLowest, one!.allows(1, 0)], [1, true, false])
  assert.equal(shareOf(inTurns(one!, true)), 1, 'a probe waits for no turn')
  one!.restart(sentAt + 40_000)
  assert.ok(shareOf(inTurns(one!)) < 0.1, 'nor does it begin with more after its breaker was open')
  for (let at = sentAt + 50_000; one!.allows(1, at) === false; at += 150)
    for (let left = 4; left > 0; left--) one!.answered(20, 1, at)
})

test('a member does not take its turns at two endpoints at once', () => {
  const group = { share: 1 / 100, member: 1 }
  const [one, other] = [1, 2].map((endpoint) => {
    const limit = new ConcurrencyLimit(bounds, group, endpoint)
    for (let at = 0; at < 2_000; at += 1_000) limit.overloaded(at, at + 500)
    return limit
  })
  let both = 0
  for (let second = 0; second < 1_000; second++)
    if (one!.allows(0, second * 1_000) && other!.allows(0, second * 1_000)) both++
  assert.ok(both > 20 && both < 120, `${both}, of 62 by chance`)
})

test('at an endpoint that is well each member decides the same, whatever number it has', () => {
  const wavers = random(3)
  const limits = [0, 1, 2 ** 31].map(
    (number) => new ConcurrencyLimit(bounds, { share: 1, member: number }, number),
  )
  for (let at = 0; at < 60_000; at += 7) {
    const decisions = limits.map((limit) => [limit.value, limit.turns, limit.allows(limit.value - 1, at)])
    for (const each of decisions) assert.deepEqual(each, [decisions[0]![0], 1, true])
    const took = 20 + 10 * wavers()
    for (const limit of limits) limit.answered(took, limit.value, at)
  }
})

test('a member that is alone keeps one request at a time, and refusals never lead to turns', () => {
  const alone = new ConcurrencyLimit(bounds)
  const member = new ConcurrencyLimit(bounds, { share: 1 / 100, member: 1 })
  for (let at = 0; at < 20_000; at += 1_000) {
    alone.overloaded(at, at + 500)
    member.refused(at, at + 500, false)
  }
  for (const limit of [alone, member]) {
    assert.deepEqual([limit.value, limit.isLowest], [1, false])
    for (let at = 0; at < 60_000; at += 1_000) assert.ok(limit.allows(0, at))
  }
})

test('members of a group start with their part of what one alone starts with, as it is when they begin', () => {
  const group = { share: 1, member: 0 }
  const limit = new ConcurrencyLimit(bounds, group)
  assert.equal(limit.value, 64)
  group.share = 1 / 10
  assert.equal(limit.value, 6)
  group.share = 1 / 1_000
  assert.equal(limit.value, 1)
  for (let each = 16; each > 0; each--) limit.answered(10, limit.value, 200)
  group.share = 1
  assert.equal(limit.value, 2, 'what it has found out stays')
})

test('a receiver whose times waver is driven as fast as it goes, because that is no queueing', () => {
  const wavers = random(7)
  const result = simulate(new ConcurrencyLimit(bounds), () => 20 + 160 * wavers(), 60_000, 0.2)
  assert.ok(result.perSecond >= 0.9 * 5_000, `${result.perSecond} a second`)
})

test('an unused limit does not grow, and a restart discards what was measured', () => {
  const limit = new ConcurrencyLimit(bounds)
  for (let at = 0; at < 600_000; at += 10) limit.answered(10, 5, at)
  assert.equal(limit.value, 64)
  for (let at = 600_000; at < 610_000; at += 10) limit.answered(10, limit.value, at)
  assert.ok(limit.value > 64)
  limit.restart(610_000)
  assert.deepEqual([limit.value, limit.phase], [64, 'rising'])
})

test('whatever is reported to it, the limit stays within its bounds', () => {
  const told = fc.record({
    took: fc.double({ min: 0, max: 5_000, noNaN: true }),
    inFlight: fc.nat(4_000),
    after: fc.nat(3_000),
    overload: fc.constantFrom(null, 'overloaded', 'refused', 'unavailable'),
    count: fc.integer({ min: 1, max: 40 }),
  })
  const given = fc.tuple(fc.integer({ min: 1, max: 100 }), fc.nat(3_000)).map(([start, more]) => ({
    min: 1,
    start,
    max: start + more,
  }))
  fc.assert(
    fc.property(
      given,
      fc.integer({ min: 1, max: 300 }),
      fc.array(told, { maxLength: 500, size: 'max' }),
      (its, members, all) => {
        const limit = new ConcurrencyLimit(its, { share: 1 / members, member: members })
        let at = 0
        for (const { took, inFlight, after, overload, count } of all) {
          at += after
          for (let left = count; left > 0; left--) limit.answered(took, inFlight, at)
          if (overload === 'unavailable') limit.unavailable(at)
          else if (overload !== null) limit[overload](at - took, at, true)
          assert.ok(limit.turns > 0 && limit.turns <= 1, `${limit.turns}`)
          assert.ok(
            Number.isInteger(limit.value) && limit.value >= its.min && limit.value <= its.max,
            `${limit.value}`,
          )
        }
      },
    ),
  )
})

test('the table has a step for every event in every phase, and measuring always ends', () => {
  for (const phase of Object.keys(limitTransitions) as LimitPhase[]) {
    const reached = new Set([phase])
    for (const from of reached) for (const [to] of Object.values(limitTransitions[from])) reached.add(to)
    assert.ok(reached.has('steering'), phase)
  }
  for (const [to] of Object.values(limitTransitions.measuring)) assert.equal(to, 'steering')
})
