// An endpoint on a virtual clock: calls come, are sent, fail, go to tiers and come back, for hours.
import assert from 'node:assert/strict'
import { defaultBreakerLimits } from '../../src/core/pacing/breaker.ts'
import { EndpointPace, type PaceBounds } from '../../src/core/pacing/endpoint-pace.ts'
import type { Outcome, OutcomeKind } from '../../src/core/delivery/outcome.ts'
import { wholeGroup } from '../../src/core/pacing/destination-limit.ts'
import { defaultTrickle } from '../../src/core/pacing/limits.ts'

export const second = 1_000
export const minute = 60 * second
export const hour = 60 * minute
const tiers = [10 * second, 30 * second, minute, 5 * minute, 15 * minute, 30 * minute, hour, 2 * hour]
const windowMs = 4 * hour

export const bounds: PaceBounds = {
  breaker: defaultBreakerLimits,
  limit: { min: 1, start: 64, max: 2_048 },
  budget: { share: 1, ...defaultTrickle },
  maxWaitMs: 2_000,
  returnDelaysMs: tiers,
  group: wholeGroup,
}

/** A reproducible source of randomness (mulberry32). */
export function random(seed: number): () => number {
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
export type Endpoint = (at: number, chance: () => number) => Answer

interface Call {
  cameAt: number
  attempts: number
  timesScheduled: number
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
      const min = left + 1 < heap.length && heap[left + 1]!.at < heap[left]!.at ? left + 1 : left
      if (heap[index]!.at <= heap[min]!.at) return
      ;[heap[min], heap[index]] = [heap[index]!, heap[min]!]
      index = min
    }
  }
}

export interface Book {
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
  maxInFlight: number
  pace: EndpointPace
}

/** One endpoint for `forMs`, with `perSecond` calls that come at random; then until nothing waits any more. */
export function live(
  endpoint: Endpoint,
  perSecond: number | ((at: number) => number),
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
    maxInFlight: 0,
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
    const wait = Math.max(tiers[Math.min(call.timesScheduled, tiers.length - 1)]!, waitMs)
    const left = call.cameAt + windowMs - at
    const fits = wait <= left ? wait : tiers.findLast((tier) => tier <= left)
    call.timesScheduled++
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
    while (queue.length > 0 && pace.mayStart(inFlight, at)) {
      const call = queue.shift()!
      if (call.attempts > 0 && !pace.mayRetry(at)) {
        defer(call, at, 'budget', 0)
        continue
      }
      book.sent.push(at)
      if (call.attempts === 0) book.firsts.push(at)
      book.maxInFlight = Math.max(book.maxInFlight, ++inFlight)
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
      arrive({ cameAt: at, attempts: 0, timesScheduled: 0 }, at)
      const rate = typeof perSecond === 'number' ? perSecond : perSecond(at)
      const after = (-Math.log(1 - chance()) / rate) * second
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
