import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decide, deferredBy } from '../../../src/core/delivery/disposition.ts'
import { ReturnTimes } from '../../../src/core/pacing/endpoint-pace.ts'
import { hour, minute, second } from '../../support/endpoint-life.ts'

const delaysMs = [10 * second, 30 * second, minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour]
const windowMs = 4 * hour
const policy = { windowMs, tiers: delaysMs.map((delayMs) => ({ name: `${delayMs}`, delayMs })) }

test('a delay is given to as many deliveries as the endpoint can answer within it, and the rest get the next longer one', () => {
  const returns = new ReturnTimes([10, 30, 60])
  const counts = new Map<number, number>()
  for (let index = 0; index < 500; index++) {
    const delayMs = returns.next(1_000, 2)
    counts.set(delayMs, (counts.get(delayMs) ?? 0) + 1)
  }
  assert.deepEqual(
    [...counts],
    [
      [10, 20],
      [30, 60],
      [60, 420],
    ],
    'the last one takes all that is left',
  )
})

test('a delay is given again to as many deliveries as the endpoint has answered since', () => {
  const returns = new ReturnTimes([10, 30])
  const next = (count: number, now: number) => Array.from({ length: count }, () => returns.next(now, 1))
  assert.deepEqual(next(11, 0).slice(-2), [10, 30])
  assert.deepEqual(next(5, 4), [10, 10, 10, 10, 30])
  assert.deepEqual(next(1, 1_000), [10])
})

/**
 * A backlog at an endpoint that answers N requests a second, with a queue two seconds deep: what does not fit into it is put
 * off at once. Virtual time, in steps of 100 ms.
 */
function workOff(backlog: number, perSecond: number) {
  const returns = new ReturnTimes(delaysMs)
  const stepMs = 100
  const due = new Map<number, number[]>()
  let arriving = Array.from({ length: backlog }, () => 0)
  let [queued, answered, expired, hops, now] = [0, 0, 0, 0, 0]
  for (; answered + expired < backlog; now += stepMs) {
    assert.ok(now <= windowMs + stepMs)
    const done = Math.min(queued, (perSecond * stepMs) / second)
    queued -= done
    answered += done
    arriving = arriving.concat(due.get(now) ?? [])
    due.delete(now)
    const places = Math.max(0, 2 * perSecond - queued)
    queued += Math.min(places, arriving.length)
    for (const timesScheduled of arriving.slice(places)) {
      const outcome = deferredBy({ reason: 'slow', waitMs: returns.next(now, perSecond / second) })
      const round = {
        outcomes: [{ endpointId: 'u1', outcome }],
        earlier: [],
        attempts: 0,
        firstAttemptAt: null,
      }
      const disposition = decide({ ...round, timesScheduled, firstScheduledAt: 0, now }, policy)
      if (disposition.kind !== 'retry') {
        expired++
        continue
      }
      hops++
      const at = now + disposition.tier.delayMs
      if (!due.has(at)) due.set(at, [])
      due.get(at)!.push(timesScheduled + 1)
    }
    arriving = []
  }
  return { expired, seconds: now / second, hops: hops / backlog }
}

test('a backlog for a slow, working endpoint is answered within five times the time that it needs', () => {
  for (const perSecond of [10, 60, 500])
    for (const seconds of perSecond === 500 ? [5, 120] : [5, 30, 120, 1_000]) {
      const { expired, seconds: taken, hops } = workOff(perSecond * seconds, perSecond)
      const what = `${seconds} s of work at ${perSecond}/s took ${taken} s, ${hops} tiers each, ${expired} expired`
      assert.equal(expired, 0, what)
      assert.ok(taken <= 5 * seconds, what)
      assert.ok(hops <= 20, what)
    }
})
