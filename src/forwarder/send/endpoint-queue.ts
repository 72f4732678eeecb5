import type { Delivery } from '../../core/delivery/delivery.ts'
import { isTooSlow, type Deferral, type RetryPolicy } from '../../core/delivery/disposition.ts'
import { canRetry, isAboutSender, type Outcome } from '../../core/delivery/outcome.ts'
import type { Breaker, BreakerPhase } from '../../core/pacing/breaker.ts'
import { EndpointPace, type RecentOutcomes } from '../../core/pacing/endpoint-pace.ts'
import { soonMs } from '../../core/pacing/own-attempts.ts'
import type { BatchTerms } from '../../core/shape/batch.ts'
import type { Unrenderable } from '../../core/shape/text-template.ts'
import { hashOn } from '../../core/hash-chains.ts'
import type { AssignedPartition } from '../consume/assigned-partition.ts'
import type { ActiveDelivery, Attempt } from './active-delivery.ts'
import { AttemptQueues, EndpointAdmission, slow, type AdmissionParts } from './endpoint-admission.ts'
import { AttemptBatch, Batches, type Taken } from './batches.ts'
import type { Deferring } from './deferrals.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { SlotUser } from './slots.ts'
import type { EndpointClient, SentAgainFor, WebhookTarget } from './webhook-transport.ts'
import { steadyClock } from '../steady-clock.ts'
import type { DestinationLimiter } from '../destination-limits.ts'
import type { AttemptReports } from './attempt-reports.ts'

/** What an endpoint's requests go over, and what that was opened with, to see a change. */
export interface OpenTarget {
  webhook: WebhookTarget
  client: EndpointClient
}

/** What all endpoints share. */
export interface EndpointParts extends AdmissionParts {
  dispatcher: Dispatcher
  reports: Pick<
    AttemptReports,
    'retryStarted' | 'breakerChanged' | 'sentAgain' | 'batchRefused' | 'loginChanged'
  >
  /** A partition waits for the endpoint from now on. */
  blocked(endpoint: EndpointQueue): void
  /** It was at rest, and is not any more. */
  stirred(endpoint: EndpointQueue): void
}

/** What counts a request while it is in flight: of one attempt, or of a batch. */
type SentRequest = Pick<Attempt, 'paceRound' | 'limit'>

const overBudget: Deferral = { reason: 'budget', waitMs: 0 }

/**
 * One URL of a destination: its own queues and its own pace, so that an endpoint that hangs uses up its own slots
 * only. Times are those of the steady clock, in ms.
 */
export class EndpointQueue implements Deferring, SlotUser {
  readonly destinationId: string
  readonly id: string
  readonly admission: EndpointAdmission
  inFlight = 0
  /** It has stirred, and nobody has found it at rest since. */
  isStirring = false
  /** While it waits for a slot; see Slots. */
  isQueued = false
  next: SlotUser | null = null
  /** Null while its destination cannot be set up. */
  #target: OpenTarget | null = null
  /** Null: its destination has no limit of its own. */
  #destinationLimit: DestinationLimiter | null = null
  readonly #attempts = new AttemptQueues()
  /** Null: each attempt is a request. */
  #batches: Batches | null = null
  readonly #dispatcher: Dispatcher
  readonly #parts: EndpointParts
  readonly #pace: EndpointPace
  /** Somebody waits for the end of an attempt beside the open breaker. */
  #ownRoom: PromiseWithResolvers<void> | null = null

  /** It takes nothing before `use`. */
  constructor(destinationId: string, id: string, parts: EndpointParts) {
    this.destinationId = destinationId
    this.id = id
    this.#dispatcher = parts.dispatcher
    this.#parts = parts
    this.#pace = new EndpointPace(parts.bounds, hashOn(hashOn(0, destinationId), `/${id}`))
    this.admission = new EndpointAdmission(this.#attempts, this.#pace, parts)
  }

  get target(): OpenTarget | null {
    return this.#target
  }

  get breaker(): Breaker {
    return this.#pace.breaker
  }

  /** Requests that may be in flight at once while its breaker is closed. */
  get limit(): number {
    return this.#pace.limit
  }

  /** The share of seconds in which it sends: 1, but where one request of each forwarder at a time is too many. */
  get turns(): number {
    return this.#pace.turns
  }

  get recent(): RecentOutcomes {
    return this.#pace.recent
  }

  get queued(): number {
    return this.#attempts.length
  }

  /** It has nothing to do, and nothing about it changes by time alone. */
  get isAtRest(): boolean {
    return this.admission.isAtRest && this.inFlight === 0 && this.breaker.phase === 'closed'
  }

  /** Nothing is queued: work that came now would be sent now, or have its token asked for, which nothing else does. */
  get isIdle(): boolean {
    const now = steadyClock.now()
    const isFree = this.queued === 0 && this.#target !== null && this.#pace.mayStart(this.inFlight, now)
    return isFree && this.loginProblem === null && !this.isLimited(now)
  }

  get waiters(): Set<AssignedPartition> {
    return this.admission.waiters
  }

  /**
   * What requests go over from now on; null: nothing, and what waits is deferred. Requests on the wire end where they are.
   * Nothing is sent or deferred before `goOn`: its destination may change in more than that.
   */
  use(target: OpenTarget | null): void {
    const before = this.#target
    this.admission.become(target === null ? 'unset' : 'set_up')
    if (before?.client !== target?.client) {
      before?.client.login?.forget(this.#onLogin)
      before?.client.close()
      target?.client.login?.onChange(this.#onLogin)
    }
    this.#target = target
    this.#noteLogin(steadyClock.now())
  }

  /** All of its destination's new settings are in place: what waits goes by them. */
  goOn(): void {
    const now = steadyClock.now()
    if (this.admission.isStopped) this.#dispatcher.deferrals.begin(this)
    else if (this.queued > 0) this.pump(now)
    if (this.waiters.size > 0) this.admission.wakeWaiters(now)
  }

  /** Its requests can be sent that could not be for want of a token, or the other way round. */
  readonly #onLogin = (): void => {
    const now = steadyClock.now()
    this.#noteLogin(now)
    if (this.admission.state === 'no_token') this.#dispatcher.deferrals.begin(this)
    else this.pump(now)
    if (this.waiters.size > 0) this.admission.wakeWaiters(now)
  }

  #noteLogin(now: number): void {
    const problem = this.loginProblem
    if (problem !== null) this.admission.become('token_lost')
    else if (this.admission.state === 'no_token') this.admission.become('token_got')
    if (this.recent.loginEnded(problem, now)) this.#parts.reports.loginChanged(this, problem)
  }

  /** Why no token is to be had for its requests; null while there is one, or they need none. */
  get loginProblem(): string | null {
    return this.#target?.client.login?.problem ?? null
  }

  /** Why the delivery can have no request here, by its URL of today; null: it can. */
  lacking({ filled = null }: Pick<Delivery, 'filled'>): Unrenderable | null {
    return this.#target?.client.lacking?.(filled) ?? null
  }

  /** From now on; null: none. What waits for it goes on with `goOn`. */
  limitTo(limit: DestinationLimiter | null): void {
    this.#destinationLimit = limit
  }

  /**
   * How attempts go out together from now on; null: each alone. Once it had batches it goes on to keep the order of keys
   * by itself: what was queued meanwhile is in no lane.
   */
  batchBy(terms: BatchTerms | null): void {
    if (terms === null && this.#batches === null) return
    const next = terms ?? { size: 1, bytes: Infinity, waitMs: 0, format: 'array' as const }
    if (this.#batches === null) this.#batches = new Batches(next)
    else this.#batches.terms = next
  }

  /** How long an attempt waits for others of its batch, at most. */
  get batchWaitMs(): number {
    return this.#batches === null ? 0 : this.#batches.terms.waitMs
  }

  /** What it is too slow for comes back through the tiers of that policy from now on. */
  returnBy({ tiers }: RetryPolicy): void {
    this.#pace.returnBy(tiers.map(({ delayMs }) => delayMs))
  }

  /** Its destination's limit is reached: more would be sent now without it. */
  isLimited(now: number): boolean {
    return this.#destinationLimit !== null && !this.#destinationLimit.isFree(now)
  }

  /** Its URL was removed from the settings. */
  close(): void {
    this.admission.become('remove')
    this.#target?.client.login?.forget(this.#onLogin)
    this.#target?.client.close()
  }

  /** It is too slow and blocks others: what it cannot take is deferred from now on. */
  shed(now: number): void {
    this.admission.become('shed')
    this.admission.wakeWaiters(now)
    this.#dispatcher.deferrals.begin(this)
  }

  /** The partition's head waits for room here. */
  wait(partition: AssignedPartition): void {
    this.waiters.add(partition)
    this.#stir()
    this.#parts.blocked(this)
  }

  /** Moves its breaker to what it is at `now`: a pause or a cool-down may be over. */
  advance(now: number): void {
    const before = this.breaker.phase
    if (before === 'closed') return
    this.#pace.advance(now)
    this.#breakerMoved(before, now)
  }

  /** A pause may also have become longer than work may wait. */
  #breakerMoved(before: BreakerPhase, now: number): void {
    const { phase } = this.breaker
    if (phase !== before) {
      this.#parts.reports.breakerChanged(this, phase)
      if (this.waiters.size > 0) this.admission.wakeWaiters(now)
    }
    if (this.queued > 0 && this.#longPause(now)) this.#dispatcher.deferrals.begin(this)
  }

  #stir(): void {
    if (!this.isStirring) this.#parts.stirred(this)
    this.isStirring = true
  }

  offer(attempt: Attempt, now: number): Deferral | null {
    this.#stir()
    const refusal = this.admission.refusal(attempt.active, now)
    if (refusal) return this.#sentOwn(attempt, refusal, now) ? null : this.#timed(refusal, now)
    this.#attempts.push(attempt)
    this.#batches?.queued(attempt, this.queued)
    this.pump(now)
    return null
  }

  /** Whether a delivery that is due for an attempt of its own could have it now. */
  mayTryOwn(now: number): boolean {
    const { phase } = this.breaker
    if (phase !== 'open' && phase !== 'half_open') return false
    if (this.#target === null || this.admission.state !== 'open') return false
    return this.#pace.mayTryOwn && !this.isLimited(now) && this.#dispatcher.slots.isFreeFor(this)
  }

  /** Resolves when it could, where that is soon; null: it can, or it is not known when. */
  ownRoom(): Promise<void> | null {
    if (!this.#pace.isOwnSoon) return null
    if (this.#ownRoom !== null) return this.#ownRoom.promise
    const { promise, resolve } = (this.#ownRoom = Promise.withResolvers<void>())
    setTimeout(() => {
      if (this.#ownRoom?.promise !== promise) return
      this.#pace.ownStalled()
      this.#ownRoom = null
      resolve()
    }, soonMs).unref()
    return promise
  }

  /** Sends a delivery that was never attempted, and that the open breaker refuses, if it is time for that. */
  #sentOwn(attempt: Attempt, { reason }: Deferral, now: number): boolean {
    if (reason !== 'breaker' || !attempt.active.isOwnAttemptDue || !this.mayTryOwn(now)) return false
    if (this.#batches?.isBehind(attempt)) return false
    if (this.#dispatcher.verdict(attempt) !== 'send' || !this.#dispatcher.slots.take(this)) return false
    this.#pace.ownStarted()
    if (this.#batches !== null) this.#sendBatch(this.#batches, [attempt], null, now)
    else {
      attempt.paceRound = null
      this.#limitedSend(attempt, now)
    }
    return true
  }

  pump(now: number): void {
    this.advance(now)
    if (this.#batches !== null) {
      this.#pumpBatches(this.#batches, now)
      return
    }
    while (this.#target !== null && this.#pace.mayStart(this.inFlight, now)) {
      const attempt = this.#attempts.first
      if (!attempt) return
      const verdict = this.#dispatcher.verdict(attempt)
      if (verdict === 'wait') return
      if (verdict !== 'send') {
        this.#attempts.shift()
        this.#dispatcher.discard(attempt, verdict)
      } else if (attempt.active.wasAttempted && !this.#pace.mayRetry(now)) {
        this.#attempts.shift()
        this.#dispatcher.deferred(attempt, overBudget)
      } else {
        if (this.#waitsForToken()) return
        const limit = this.#destinationLimit
        if (limit !== null && !limit.allows(this, now)) return
        if (!this.#dispatcher.slots.take(this)) return
        this.#attempts.shift()
        attempt.paceRound = this.#pace.started()
        this.#limitedSend(attempt, now)
      }
    }
  }

  /** It has no token yet: one is asked for, and what is queued goes on when it is there, or none is to be had. */
  #waitsForToken(): boolean {
    const login = this.#target?.client.login
    if (!login || login.isReady) return false
    login.begin()
    return true
  }

  #pumpBatches(batches: Batches, now: number): void {
    while (this.queued > 0 && this.#target !== null && this.#pace.mayStart(this.inFlight, now)) {
      // A probe waits for nobody: what would go with it is deferred.
      const isUrgent = this.breaker.phase === 'half_open'
      if (!isUrgent && !batches.isDue(this.#attempts, this.admission.bytes, now)) {
        batches.wakeWhenDue(this.#attempts, now, () => this.pump(steadyClock.now()))
        return
      }
      if (this.#waitsForToken()) return
      if (this.#destinationLimit !== null && !this.#destinationLimit.allows(this, now)) return
      if (!this.#dispatcher.slots.take(this)) return
      const { attempts, ended } = batches.take(
        this.#attempts,
        now,
        isUrgent,
        (attempt) => this.#dispatcher.verdict(attempt),
        () => this.#pace.mayRetry(now),
      )
      if (attempts.length === 0) this.#dispatcher.slots.release()
      else this.#sendBatch(batches, attempts, this.#pace.started(), now)
      for (const each of ended) this.#endUnsent(each)
      if (attempts.length === 0 && ended.length === 0) {
        batches.wakeWhenDue(this.#attempts, now, () => this.pump(steadyClock.now()))
        return
      }
    }
  }

  #endUnsent({ attempt, verdict }: Taken['ended'][number]): void {
    if (verdict === 'over_budget') this.#dispatcher.deferred(attempt, overBudget)
    else this.#dispatcher.discard(attempt, verdict)
  }

  #sendBatch(batches: Batches, attempts: readonly Attempt[], paceRound: number | null, now: number): void {
    const batch = new AttemptBatch(attempts, this)
    batch.paceRound = paceRound
    this.#destinationLimit?.started(now)
    batch.limit = this.#destinationLimit
    batches.started(batch)
    this.inFlight++
    for (const { active } of attempts) this.#goesOut(active)
    const [{ active }] = attempts as [Attempt]
    const { destination } = active
    try {
      const request =
        destination.batch === null
          ? active.signedRequest()
          : destination.signBatch(
              attempts.map((attempt) => attempt.active.delivery),
              destination.batch.format,
            )
      this.#target!.client.send(request, batch)
    } catch (error) {
      this.#batchNotSent(batch)
      for (const attempt of attempts) this.#dispatcher.failed(attempt, error)
    }
  }

  #limitedSend(attempt: Attempt, now: number): void {
    this.#destinationLimit?.started(now)
    attempt.limit = this.#destinationLimit
    this.#send(attempt, this.#target!.client)
  }

  #goesOut(active: ActiveDelivery): void {
    if (active.sent++ > 0) return
    active.firstAttemptAt ??= Date.now()
    if (active.isRetry) this.#parts.reports.retryStarted(active)
  }

  #send(attempt: Attempt, client: EndpointClient): void {
    this.inFlight++
    const { active } = attempt
    this.#goesOut(active)
    try {
      client.send(active.signedRequest(), attempt)
    } catch (error) {
      this.#notSent(attempt)
      this.#dispatcher.failed(attempt, error)
    }
  }

  /**
   * The connection for an attempt is there at last. True if it must not go out any more, or not now: it counts as
   * never sent, and is discarded or first in the queue again.
   */
  withdraw(attempt: Attempt): boolean {
    const verdict = this.#dispatcher.verdict(attempt)
    if (verdict === 'send') return false
    this.#notSent(attempt)
    // A little later: the caller still holds the connection.
    queueMicrotask(() => this.#dispatcher.slotReturned(this, steadyClock.now()))
    if (verdict === 'wait') this.#attempts.unshift(attempt)
    else this.#dispatcher.discard(attempt, verdict)
    this.#lookAfterPutBack()
    return true
  }

  /** The same of a batch: what may still be sent goes with the next one. */
  withdrawBatch(batch: AttemptBatch): boolean {
    const verdicts = batch.attempts.map((attempt) => this.#dispatcher.verdict(attempt))
    if (verdicts.every((verdict) => verdict === 'send')) return false
    this.#batchNotSent(batch)
    queueMicrotask(() => this.#dispatcher.slotReturned(this, steadyClock.now()))
    for (let index = batch.attempts.length - 1; index >= 0; index--) {
      const verdict = verdicts[index]!
      if (verdict === 'send' || verdict === 'wait') this.#attempts.unshift(batch.attempts[index]!)
    }
    batch.attempts.forEach((attempt, index) => {
      const verdict = verdicts[index]!
      if (verdict !== 'send' && verdict !== 'wait') this.#dispatcher.discard(attempt, verdict)
    })
    this.#lookAfterPutBack()
    return true
  }

  /** What is in the queue again may have nowhere to go by now. */
  #lookAfterPutBack(): void {
    if (this.admission.state === 'removed') this.#dispatcher.removed(this)
    else if (this.admission.isStopped) this.#dispatcher.deferrals.begin(this)
  }

  /**
   * Its connection ended with the request on it, or its token was refused. It has gone out, so it is never withdrawn: it
   * fails if it may not go again.
   */
  sendAgain(attempt: Attempt, why: SentAgainFor): boolean {
    if (!this.mayStillGo([attempt])) return false
    if (why === 'connection') this.#parts.reports.sentAgain(this)
    return true
  }

  sendBatchAgain({ attempts }: AttemptBatch, why: SentAgainFor): boolean {
    if (!this.mayStillGo(attempts)) return false
    if (why === 'connection') this.#parts.reports.sentAgain(this)
    return true
  }

  /** It is about to go out once more: it may have to fail after all. */
  mayStillGo(attempts: readonly Attempt[]): boolean {
    return attempts.every((attempt) => this.#dispatcher.verdict(attempt) === 'send')
  }

  #notSent(attempt: Attempt): void {
    attempt.active.notSent()
    this.#requestNotSent(attempt)
  }

  #batchNotSent(batch: AttemptBatch): void {
    for (const { active } of batch.attempts) active.notSent()
    this.#batches!.ended(batch)
    this.#requestNotSent(batch)
  }

  #requestNotSent({ paceRound, limit }: SentRequest): void {
    if (paceRound === null) this.#pace.ownWithdrawn()
    else this.#pace.withdrawn(paceRound)
    this.inFlight--
    this.#dispatcher.slots.release()
    limit?.withdrawn()
  }

  ended(attempt: Attempt, outcome: Outcome): void {
    this.#requestEnded(attempt, outcome, attempt.active.wasAttempted)
    this.#dispatcher.ended(attempt, outcome)
  }

  /**
   * Where it was refused, it is sent again in halves, until the call is found that is not wanted: that one alone is
   * refused for good. A refusal of whoever sends is one of all its calls, and so is one that is worth another try as it is.
   */
  batchEnded(batch: AttemptBatch, outcome: Outcome): void {
    const { attempts } = batch
    this.#requestEnded(
      batch,
      outcome,
      attempts.every(({ active }) => active.wasAttempted),
    )
    this.#batches!.ended(batch)
    const isOfOneCall = outcome.kind === 'status_4xx' && !isAboutSender(outcome) && !canRetry(outcome)
    if (!isOfOneCall || attempts.length === 1) {
      this.#dispatcher.endedTogether(attempts, this, outcome)
      return
    }
    this.#parts.reports.batchRefused(batch, this, outcome)
    for (const attempt of attempts.toReversed()) {
      attempt.most = Math.ceil(attempts.length / 2)
      this.#attempts.unshift(attempt)
    }
    this.#lookAfterPutBack()
    this.#dispatcher.slotReturned(this, steadyClock.now())
  }

  #requestEnded({ paceRound, limit }: SentRequest, outcome: Outcome, isRetry: boolean): void {
    const now = steadyClock.now()
    const before = this.breaker.phase
    if (paceRound === null) {
      this.#pace.ownEnded(outcome, now)
      this.#ownRoom?.resolve()
      this.#ownRoom = null
    } else this.#pace.ended(paceRound, outcome, this.inFlight, isRetry, now)
    this.inFlight--
    this.#dispatcher.slots.release()
    if (this.breaker.phase !== 'closed' || before !== 'closed') this.#breakerMoved(before, now)
    limit?.ended(now)
  }

  takeQueued(): Attempt[] {
    return this.#attempts.take(steadyClock.now(), -Infinity, Infinity)
  }

  /** Removes attempts of lost partitions. */
  dropLost(): void {
    for (const attempt of this.#attempts.takeLost()) this.#dispatcher.discard(attempt, 'drop')
  }

  /** Defers what is queued while it is not set up, its breaker is open or a pause is long; while it sheds, what has waited for too long. */
  defer(max: number): number {
    const now = steadyClock.now()
    const pause = this.#longPause(now)
    const waitMs = pause ? -Infinity : this.#parts.bounds.maxWaitMs
    const taken = pause || this.admission.isShedding ? this.#attempts.take(now, waitMs, max) : []
    for (const attempt of taken) this.#dispatcher.deferred(attempt, pause ?? this.#timed(slow, now))
    return taken.length
  }

  /** Defers `count` deliveries that were not offered: why, and for how long. It must refuse them. */
  deferred(isRetry: boolean, count: number, now: number): Deferral {
    return this.#timed(this.admission.refuses(isRetry, now) ?? slow, now, count)
  }

  /** With the time at which what is deferred finds its place, where the endpoint is too slow. */
  #timed(deferral: Deferral, now: number, count = 1): Deferral {
    if (!isTooSlow(deferral.reason)) return deferral
    const reason = deferral.reason === 'slow' && this.isLimited(now) ? 'limited' : deferral.reason
    const requests = count / (this.#batches?.terms.size ?? 1)
    return { reason, waitMs: this.#pace.putOff(now, this.#destinationLimit, requests) }
  }

  /** Why what is queued does not wait: the endpoint is not set up, or takes nothing for long. */
  #longPause(now: number): Deferral | null {
    const { phase } = this.breaker
    const { isStopped } = this.admission
    const isPaused = isStopped || phase === 'open' || phase === 'paused'
    return isPaused ? this.admission.pause(0, now) : null
  }
}
