// Endpoints on a virtual clock: calls come, are sent, fail, go to tiers and come back, for hours.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultBreakerLimits } from '../../src/core/breaker.ts'
import { EndpointPace, type PaceBounds } from '../../src/core/endpoint-pace.ts'
import type { Outcome, OutcomeKind } from '../../src/core/outcome.ts'
import { defaultTrickle } from '../../src/core/retry-budget.ts'

const second = 1_000
const minute = 60 * second
const hour = 60 * minute
const tiers = [10 * second, 30 * second, minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour]
const windowMs = 4 * hour

const bounds: PaceBounds = {
  breaker: defaultBreakerLimits,
  limit: { min: 1, start: 64, max: 2_048 },
  budget: { share: 1, ...defaultTrickle },
  maxWaitMs: 2_000,
}

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

/** What an endpoint answers to a request that comes at `at`, and how long that takes. */
interface Answer {
  kind: OutcomeKind
  tookMs: number
  retryAfterMs?: number
}
type Endpoint = (at: number, chance: () => number) => Answer

interface Call {
  cameAt: number
  attempts: number
  handOvers: number
}
/** What happens next, by time. */
class Agenda<T> {
  readonly #heap: { at: number; what: T }[] = []

  get next(): { at: number; what: T } | undefined {
    return this.#heap[0]
  }

  add(at: number, what: T): void {
    const heap = this.#heap
    let index = heap.push({ at, what }) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      if (heap[parent]!.at <= heap[index]!.at) return
      ;[heap[parent], heap[index]] = [heap[index]!, heap[parent]!]
      index = parent
    }
  }

  take(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    heap[0] = last
    for (let index = 0; ;) {
      const left = 2 * index + 1
      if (left >= heap.length) return
      const least = left + 1 < heap.length && heap[left + 1]!.at < heap[left]!.at ? left + 1 : left
      if (heap[index]!.at <= heap[least]!.at) return
      ;[heap[least], heap[index]] = [heap[index]!, heap[least]!]
      index = least
    }
  }
}

interface Book {
  sent: number[]
  /** Attempts after the first that failed, and first attempts. */
  failedRetries: number[]
  firsts: number[]
  delivered: number
  expired: number
  made: number
  deferred: Record<string, number>
  /** When the breaker was closed again. */
  closedAt: number[]
  mostInFlight: number
  pace: EndpointPace
}

/** One endpoint for `forMs`, with `perSecond` calls that come at random; then until nothing waits any more. */
function live(
  endpoint: Endpoint,
  perSecond: number,
  forMs: number,
  seed: number,
  given: Partial<PaceBounds> = {},
): Book {
  const chance = random(seed)
  const pace = new EndpointPace({ ...bounds, ...given })
  const book: Book = {
    sent: [],
    failedRetries: [],
    firsts: [],
    delivered: 0,
    expired: 0,
    made: 0,
    deferred: {},
    closedAt: [],
    mostInFlight: 0,
    pace,
  }
  type Event = 'arrival' | 'look' | { due: Call } | { ended: Call; round: number; answer: Answer }
  const agenda = new Agenda<Event>()
  const queue: Call[] = []
  let inFlight = 0
  let looking = false

  const watched = <T>(at: number, act: () => T): T => {
    const before = pace.breaker.phase
    const result = act()
    if (before !== 'closed' && pace.breaker.phase === 'closed') book.closedAt.push(at)
    return result
  }
  const toTier = (call: Call, at: number, waitMs: number) => {
    const wait = Math.max(tiers[Math.min(call.handOvers, tiers.length - 1)]!, waitMs)
    const left = call.cameAt + windowMs - at
    const fits = wait <= left ? wait : tiers.findLast((tier) => tier <= left)
    call.handOvers++
    if (fits === undefined) book.expired++
    else agenda.add(at + fits, { due: call })
  }
  const defer = (call: Call, at: number, reason: string, waitMs: number) => {
    book.deferred[reason] = (book.deferred[reason] ?? 0) + 1
    toTier(call, at, waitMs)
  }
  const pump = (at: number) => {
    watched(at, () => pace.advance(at))
    const stopped = queue.length > 0 && pace.breaker.phase !== 'closed' ? pace.deferral(0, at) : null
    if (stopped) for (const call of queue.splice(0)) defer(call, at, stopped.reason, stopped.waitMs)
    while (queue.length > 0 && pace.mayStart(inFlight)) {
      const call = queue.shift()!
      if (call.attempts > 0 && !pace.mayRetry(at)) {
        defer(call, at, 'budget', 0)
        continue
      }
      book.sent.push(at)
      if (call.attempts === 0) book.firsts.push(at)
      book.mostInFlight = Math.max(book.mostInFlight, ++inFlight)
      const answer = endpoint(at, chance)
      agenda.add(at + answer.tookMs, { ended: call, round: pace.started(), answer })
    }
    if (queue.length > 0 && !looking) {
      looking = true
      agenda.add(at + 250, 'look')
    }
  }
  const arrive = (call: Call, at: number) => {
    watched(at, () => pace.advance(at))
    const deferral = pace.deferral(queue.length, at)
    if (deferral) defer(call, at, deferral.reason, deferral.waitMs)
    else queue.push(call)
    pump(at)
  }

  agenda.add(chance() * second, 'arrival')
  for (let next = agenda.next; next; next = agenda.next) {
    const { at, what } = next
    agenda.take()
    if (what === 'arrival') {
      book.made++
      arrive({ cameAt: at, attempts: 0, handOvers: 0 }, at)
      const after = (-Math.log(1 - chance()) / perSecond) * second
      if (at + after < forMs) agenda.add(at + after, 'arrival')
    } else if (what === 'look') {
      looking = false
      pump(at)
    } else if ('due' in what) {
      arrive(what.due, at)
    } else {
      const { ended: call, round, answer } = what
      const outcome: Outcome = {
        kind: answer.kind,
        status: answer.kind === 'status_5xx' ? 503 : answer.kind === 'status_429' ? 429 : null,
        retryAfterMs: answer.retryAfterMs ?? null,
        body: null,
        durationMs: answer.tookMs,
        detail: null,
      }
      const isRetry = call.attempts > 0
      watched(at, () => pace.ended(round, outcome, inFlight, isRetry, at))
      inFlight--
      call.attempts++
      if (answer.kind === 'success') book.delivered++
      else {
        if (isRetry) book.failedRetries.push(at)
        toTier(call, at, answer.retryAfterMs ?? 0)
      }
      pump(at)
    }
    assert.ok(pace.limit >= bounds.limit.min && pace.limit <= bounds.limit.max)
    assert.ok(inFlight <= bounds.limit.max)
  }
  assert.equal(book.delivered + book.expired, book.made, 'every call has its end')
  return book
}

const well =
  (ms: number): Endpoint =>
  (_, chance) => ({ kind: 'success', tookMs: ms * (0.8 + 0.4 * chance()) })
const refuses: Endpoint = () => ({ kind: 'network', tookMs: 1 })
const answers503: Endpoint = () => ({ kind: 'status_5xx', tookMs: 5 })
const hangs: Endpoint = () => ({ kind: 'timeout', tookMs: 5_000 })
const bad = { refuses, answers503, hangs }
/** Bad from `from` to `to`. */
const during =
  (from: number, to: number, then: Endpoint, otherwise: Endpoint): Endpoint =>
  (at, chance) =>
    (at >= from && at < to ? then : otherwise)(at, chance)
const failing =
  (share: number, otherwise: Endpoint): Endpoint =>
  (at, chance) =>
    chance() < share ? { kind: 'status_5xx', tookMs: 20 } : otherwise(at, chance)

/** The most of `times` that lie within any `span`. */
function mostWithin(times: readonly number[], span: number): number {
  let most = 0
  let first = 0
  times.forEach((time, index) => {
    while (times[first]! <= time - span) first++
    most = Math.max(most, index - first + 1)
  })
  return most
}

test('two thousand endpoints for two hours: whoever is well has nothing deferred, failed or late in the day', () => {
  for (let seed = 0; seed < 2_000; seed++) {
    const rate = [0.01, 0.05, 0.1, 0.2][seed % 4]!
    const book = live(well([1, 20, 200, 2_000][(seed >> 2) % 4]!), rate, 2 * hour, seed)
    assert.deepEqual([book.deferred, book.delivered], [{}, book.made])
  }
})

test('an endpoint that works but fails now and then stays closed: nothing is put off, all is delivered', () => {
  for (let seed = 0; seed < 20; seed++) {
    const book = live(failing(0.2, well(50)), 2, hour, seed)
    assert.deepEqual([book.deferred, book.expired], [{}, 0])
  }
})

for (const [name, endpoint] of Object.entries(bad)) {
  test(`an endpoint that ${name} for hours gets a bounded number of requests, whatever comes for it`, () => {
    for (let seed = 0; seed < 30; seed++) {
      const rate = [0.5, 5, 50][seed % 3]!
      const book = live(endpoint, rate, (rate === 50 ? 0.1 : 1) * hour, seed)
      // What opens the breaker: 20 that failed, and as many as were under way by then.
      const opened = book.sent.findIndex((at) => at > book.sent[0]! + 30 * second + 20 / (rate / second))
      const later = book.sent.slice(opened)
      assert.ok(opened <= 64 + 20 + 6, `${opened} at first`)
      assert.ok(later.length > 0 && mostWithin(later, minute) <= 6, `${mostWithin(later, minute)} a minute`)
      assert.ok(mostWithin(later.slice(6), minute) <= 3)
      assert.equal(book.delivered, 0)
    }
  })

  test(`an endpoint that ${name} for half an hour is back at its full rate soon after, and gets everything`, () => {
    const end = 40 * minute
    for (let seed = 0; seed < 30; seed++) {
      const rate = [0.5, 5, 20][seed % 3]!
      const book = live(during(10 * minute, end, endpoint, well(100)), rate, hour, seed)
      assert.equal(book.expired, 0)
      const closed = book.closedAt.find((at) => at >= end)!
      // The longest cool-down with a probe that hangs, then sixteen successes, of calls that come at random.
      const most = 35 * second + (40 * second) / rate
      assert.ok(closed - end <= most, `${closed - end} of ${most} ms at ${rate} a second`)
      assert.equal(book.pace.breaker.phase, 'closed')
      assert.ok(book.pace.limit >= 64)
    }
  })
}

test('whatever an endpoint did before, once it is well its breaker closes and its limit comes back', () => {
  const weather: Endpoint[] = [
    refuses,
    answers503,
    hangs,
    well(5),
    well(3_000),
    failing(0.5, well(50)),
    failing(0.9, well(50)),
    () => ({ kind: 'status_429', tookMs: 5, retryAfterMs: 1_000 }),
    () => ({ kind: 'status_5xx', tookMs: 5, retryAfterMs: hour }),
  ]
  for (let seed = 0; seed < 300; seed++) {
    const chance = random(seed)
    const spells = Array.from({ length: 20 }, () => weather[Math.floor(chance() * weather.length)]!)
    // A spell of a minute or two each, and then it is well.
    const endpoint: Endpoint = (at, its) => (spells[Math.floor(at / (90 * second))] ?? well(20))(at, its)
    const book = live(endpoint, 2, hour, seed)
    assert.equal(book.pace.breaker.phase, 'closed')
    assert.ok(book.pace.limit >= 64, `${book.pace.limit}`)
    assert.ok(book.expired === 0, `${book.expired} expired`)
  }
})

test('retries that fail stay within the budget, and in the end all is delivered or has expired', () => {
  const share = 0.5
  const budget = { share, perSecond: 0.05, burst: 5 }
  for (let seed = 0; seed < 20; seed++) {
    const book = live(failing(0.7, well(100)), 1, 2 * hour, seed, { budget })
    assert.ok(book.deferred.budget! > 0)
    for (let from = 0; from < 2 * hour; from += minute) {
      const count = (times: readonly number[], least: number) =>
        times.filter((at) => at >= least && at < from + 9 * minute).length
      const failed = count(book.failedRetries, from)
      const most = count(book.firsts, from - 2 * minute) * share + 5 + 0.05 * 600 + 5
      assert.ok(failed <= most, `${failed} of ${most} in the ten minutes after ${from}`)
    }
    assert.ok(book.sent.length < book.made * 2.6, `${book.sent.length} requests for ${book.made} calls`)
  }
})

test('a million retries that come due at an endpoint that is well are not limited by its budget', () => {
  const pace = new EndpointPace(bounds)
  const success = { kind: 'success', status: 200, retryAfterMs: null, durationMs: 1 } as Outcome
  for (let index = 0; index < 1_000_000; index++) {
    assert.ok(pace.mayRetry(index / 16))
    pace.ended(pace.started(), success, 1, true, index / 16)
  }
})

test('an endpoint that allows ten requests a second and says so by 429 gets about as many, and little is refused', () => {
  let allowance = 10
  let since = 0
  const limited: Endpoint = (at) => {
    allowance = Math.min(10, allowance + ((at - since) * 10) / second)
    since = at
    if (allowance < 1) return { kind: 'status_429', tookMs: 20, retryAfterMs: 1_000 }
    allowance--
    return { kind: 'success', tookMs: 20 }
  }
  const book = live(limited, 8, hour, 1)
  assert.equal(book.delivered, book.made)
  const refused = book.sent.length - book.delivered
  assert.ok(refused < book.made * 0.1, `${refused} of ${book.made} refused`)
})
