import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { canLieInRun, type DeferredRun } from '../../core/delivery/deferred-run.ts'
import {
  urlIdOf,
  type DeadLetterReason,
  type Delivery,
  type RetryDelivery,
} from '../../core/delivery/delivery.ts'
import {
  afterRound,
  type Deferral,
  type RoundOutcome,
  decide,
  deferredBy,
  expiryReason,
  isExpired,
  retryAt,
  type RetryPolicy,
} from '../../core/delivery/disposition.ts'
import type { Outcome } from '../../core/delivery/outcome.ts'
import type { DispositionLabel, SkipReason } from '../../core/ledger/delivery-event.ts'
import type { HeldBy } from '../../core/ledger/tally.ts'
import { ownBytes } from '../../core/own-bytes.ts'
import type { ReleaseReason } from '../../core/ordering/strict-terms.ts'
import { lingerMs } from '../../core/pacing/limits.ts'
import { Unrenderable } from '../../core/shape/text-template.ts'
import { strictTier, type Tier } from '../../core/topics.ts'
import { stackOf } from '../../errors.ts'
import type { DispositionDetails } from '../commit/ledger.ts'
import type { Work } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import type { Log } from '../log.ts'
import type { DestinationRuntime } from '../plan/destination-runtime.ts'
import type { Erased, Suppressed } from '../plan/erased.ts'
import type { ActiveDelivery, DeliverySettler } from '../send/active-delivery.ts'
import { DeadLetters, deadLetterOf, type SettlingParts } from './dead-letters.ts'
import { DeferredRuns } from './deferred-runs.ts'
import { RetryRecords } from './retry-records.ts'
import { steadyClock } from '../steady-clock.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'

export interface SettlerParts extends SettlingParts {
  erased: Erased
  suppressed: Suppressed
  /** Its policy and counts, also where the settings do not have it. */
  destinationOf(id: string): Pick<DestinationRuntime, 'policy' | 'metrics'>
  log: Pick<Log, 'error' | 'warn'>
}

/** Why an endpoint does not take a delivery now. */
export interface EndpointDeferral {
  endpointId: string
  deferral: Deferral
}

/** How deliveries wait that no endpoint takes now. */
export interface Refused {
  tier: Tier
  endpointIds: readonly string[]
  deferrals: readonly EndpointDeferral[]
}

/** At most one line for each destination in that time, in ms. */
const releasedLineMs = 60_000

type Times = Pick<Delivery, 'timesScheduled' | 'firstScheduledAt'>

/**
 * Ends rounds: decides what becomes of a delivery, writes what must be kept, and only then finishes it at its
 * record.
 */
export class Settler implements DeliverySettler {
  readonly #parts: SettlerParts
  readonly #deadLetters: DeadLetters
  readonly #retries: RetryRecords
  readonly #runs: DeferredRuns
  /** Calls let go since the last line about it, by destination. */
  readonly #released = new Map<string, { calls: number; loggedAt: number }>()

  constructor(parts: SettlerParts) {
    this.#parts = parts
    this.#deadLetters = new DeadLetters(parts)
    this.#runs = new DeferredRuns(parts)
    this.#retries = new RetryRecords({ ...parts, deadLetters: this.#deadLetters })
  }

  settle(active: ActiveDelivery): void {
    const { delivery, destination, attempts, firstAttemptAt, work, key } = active
    const { timesScheduled, firstScheduledAt } = delivery
    const now = Date.now()
    const outcomes = outcomesOf(active)
    const { outcomes: earlier } = delivery
    const round = { outcomes, earlier, attempts, timesScheduled, firstAttemptAt, firstScheduledAt, now }
    const { policy } = destination
    const disposition = decide(round, policy)
    if (disposition.kind === 'delivered') {
      this.#end(active, 'delivered')
    } else if (this.#parts.erased.isDeliveryErased(active)) {
      this.#end(active, 'erased')
    } else if (disposition.kind === 'retry') {
      const { tier, endpointIds, notBefore, deferred } = disposition
      if (active.isOrdered) {
        // It says itself when it is due: nothing there has a delay of its own.
        const at = retryAt(disposition, round, policy)
        const parked = afterRound(delivery, round, { endpointIds, notBefore: at, scheduledAt: now })
        this.#park(active, parked, now, deferred ? 'deferred' : 'retried')
        return
      }
      if (deferred && this.#canRefer(active) && fits(policy, tier, firstScheduledAt, now)) {
        this.#putOff(active, tier, endpointIds)
        return
      }
      const retry = afterRound(delivery, round, { endpointIds, notBefore, scheduledAt: now })
      let released: ReleaseReason | null = null
      if (work.parked) {
        const at = retryAt(disposition, round, policy)
        released = work.parked.again({ ...retry, notBefore: at }, at)
        if (released === null) {
          this.#parts.budget.free(delivery.body.length)
          return
        }
        this.#countReleased(retry, released)
      }
      const label = deferred ? 'deferred' : 'retried'
      this.#retries.write(work, key, tier, retry, now, label, destination.metrics, { released })
    } else {
      const endpointIds = outcomes.map(({ endpointId }) => endpointId)
      const { reason } = disposition
      const detail = reason === 'not_attempted' ? notAttempted(delivery) : null
      this.#deadDelivery(active, reason, detail, endpointIds, now)
    }
  }

  skip(active: ActiveDelivery): void {
    const isErased = active.wasScheduled && this.#parts.erased.isDeliveryErased(active)
    if (isErased) this.#end(active, 'erased')
    else
      this.#end(active, 'skipped', {
        reason: this.#isSuppressed(active) ? 'suppressed' : skipReasonOf(active),
      })
  }

  hold(active: ActiveDelivery): void {
    const { destination } = active
    if (active.wasScheduled && this.#parts.erased.isDeliveryErased(active)) {
      this.#end(active, 'erased')
      return
    }
    // Of a run all is held, or nothing: its record says nothing of single calls. It is, when this part of it comes due.
    if (active.work.isOfRun && this.#canRefer(active)) {
      this.#putOff(active, destination.policy.tiers[0]!, active.delivery.endpointIds)
      return
    }
    const heldBy = pauseOf(destination)
    this.#endWith(active, 'held', this.#parts.ledger.codes.held(heldBy), { reason: heldBy.pauseId })
  }

  park(active: ActiveDelivery): void {
    if (this.#parts.erased.isDeliveryErased(active)) {
      this.#end(active, 'erased')
      return
    }
    const { delivery } = active
    const now = Date.now()
    const times = { timesScheduled: delivery.timesScheduled + 1, firstScheduledAt: now }
    this.#park(
      active,
      { ...delivery, ...times, endpointIds: active.destination.endpointIds },
      now,
      'deferred',
    )
  }

  #park(active: ActiveDelivery, parked: Delivery, now: number, label: 'deferred' | 'retried'): void {
    const { work, key, destination } = active
    const parking = destination.order!.park(active)
    this.#retries.write(work, key, strictTier, parked, now, label, destination.metrics, { parking })
  }

  /** A parked call that others wait for is let go: it goes on through the tiers, not before `at`, and may be overtaken. */
  release(work: Work, key: string | null, parked: RetryDelivery, at: number, released: ReleaseReason): void {
    if (this.#parts.erased.isRetryErased(parked, key)) {
      this.eraseRetry(work, parked)
      return
    }
    const now = Date.now()
    const { policy, metrics } = this.#parts.destinationOf(parked.destinationId)
    const deadline = Math.min(parked.firstAttemptAt ?? now, parked.firstScheduledAt ?? now) + policy.windowMs
    const next = {
      ...parked,
      timesScheduled: parked.timesScheduled + 1,
      notBefore: at > now ? Math.min(at, Math.max(deadline, now)) : null,
    }
    this.#countReleased(parked, released)
    this.#parts.budget.reserve(parked.body.length)
    this.#retries.write(work, key, policy.tiers[0]!, next, now, 'deferred', metrics, { released })
  }

  #countReleased({ id, destinationId }: Delivery, reason: ReleaseReason): void {
    this.#parts.metrics.destination(destinationId).released(reason)
    const now = steadyClock.now()
    const since = this.#released.get(destinationId) ?? { calls: 0, loggedAt: -Infinity }
    this.#released.set(destinationId, since)
    since.calls++
    if (now - since.loggedAt < releasedLineMs) return
    this.#parts.log.warn(
      { destination: destinationId, delivery: id, reason, calls: since.calls },
      'calls that fail are not waited for any longer: later calls of their users may overtake them',
    )
    Object.assign(since, { calls: 0, loggedAt: now })
  }

  /** A parked call of which nothing can be sent. */
  giveUp(work: Work, key: string | null, delivery: Delivery, reason: DeadLetterReason, detail: string): void {
    this.#parts.budget.reserve(delivery.body.length)
    this.#deadLetters.writeDelivery(work, keyBytes(key), reason, detail, delivery, Date.now())
  }

  /** A call for a paused destination: its part of the record is done. */
  holdCall(work: Work, call: AnalyticsCall, destination: DestinationRuntime): void {
    const { ledger } = this.#parts
    const { messageId, sourceId } = call
    const type = call.type as Delivery['type']
    const heldBy = pauseOf(destination)
    const { destinationId } = heldBy
    const id = destination.deliveryId(messageId)
    destination.metrics.disposition('held')
    ledger.held(work, { messageId, sourceId, destinationId, id, type, attempts: 0 }, heldBy.pauseId)
    work.finishOne(ledger.codes.held(heldBy))
  }

  /** A retry that came due while its destination is paused. */
  holdRetry(work: Work, retry: RetryDelivery, destination: DestinationRuntime): void {
    const { ledger } = this.#parts
    destination.metrics.disposition('held')
    const heldBy = pauseOf(destination)
    ledger.held(work, retry, heldBy.pauseId)
    work.finishOne(ledger.codes.held(heldBy))
  }

  /** Publishes what is collected of deliveries that are put off. */
  flush(): void {
    this.#runs.flush()
  }

  /** That all that need be known of a delivery is where its call lies: nothing was tried, and nothing was changed. */
  #canRefer({ delivery, work, wasScheduled, attempts }: ActiveDelivery): boolean {
    return attempts === 0 && canLieInRun(delivery) && (work.isOfRun || !wasScheduled)
  }

  #putOff({ delivery, destination, work }: ActiveDelivery, tier: Tier, endpointIds: readonly string[]): void {
    const { origin, firstScheduledAt } = delivery
    const { topic, partition, offset } = origin
    const from = work.isOfRun ? work.place : null
    const urlId = work.isOfRun ? urlIdOf(delivery) : destination.urlId
    const timesScheduled = delivery.timesScheduled + 1
    this.#parts.budget.releaseBytes(delivery.body.length)
    this.#runs.add(
      { destination, urlId, endpointIds, tier, topic, partition, timesScheduled, firstScheduledAt, from },
      work,
      offset,
    )
  }

  /**
   * How deliveries wait that no endpoint takes now; null where no tier fits any more, and each is to be settled by itself.
   *
   * @param times of a run; those of calls begin now
   */
  refusalOf(
    { policy }: DestinationRuntime,
    deferrals: readonly EndpointDeferral[],
    { timesScheduled, firstScheduledAt }: Times = { timesScheduled: 0, firstScheduledAt: null },
  ): Refused | null {
    const now = Date.now()
    const outcomes = deferrals.map(({ endpointId, deferral }) => ({
      endpointId,
      outcome: deferredBy(deferral),
    }))
    const never = { earlier: [], attempts: 0, firstAttemptAt: null }
    const round = { ...never, outcomes, timesScheduled, firstScheduledAt, now }
    const disposition = decide(round, policy)
    if (disposition.kind !== 'retry' || !fits(policy, disposition.tier, firstScheduledAt, now)) return null
    const { tier, endpointIds } = disposition
    return { tier, endpointIds, deferrals }
  }

  /** Puts off a call. */
  putOffCall(work: Work, destination: DestinationRuntime, { tier, endpointIds, deferrals }: Refused): void {
    for (const { deferral } of deferrals) destination.metrics.deferral(deferral.reason)
    const { topic, partition, offset } = work.place
    const { urlId } = destination
    const times = { timesScheduled: 1, firstScheduledAt: null }
    this.#parts.budget.reserve(0)
    this.#runs.add(
      { tier, endpointIds, destination, urlId, topic, partition, ...times, from: null },
      work,
      offset,
    )
  }

  /** Puts off the rest of a run, of which nothing was begun. */
  putOffRest(
    work: Work,
    run: DeferredRun,
    destination: DestinationRuntime,
    offsets: readonly number[],
    { tier, endpointIds, deferrals }: Refused,
  ): void {
    const { firstScheduledAt, calls, urlId } = run
    for (const { deferral } of deferrals) destination.metrics.deferral(deferral.reason, offsets.length)
    const { topic, partition } = calls
    const times = { timesScheduled: run.timesScheduled + 1, firstScheduledAt }
    this.#runs.addRest(
      { tier, endpointIds, destination, urlId, topic, partition, ...times, from: work.place },
      work,
      offsets,
    )
  }

  /** What is left of a run that was begun when its destination was paused: it comes back soon, and is held then. */
  putOffHeld(
    work: Work,
    run: DeferredRun,
    destination: DestinationRuntime,
    offsets: readonly number[],
  ): void {
    const { endpointIds } = run
    const tier = destination.policy.tiers[0]!
    this.putOffRest(work, run, destination, offsets, { tier, endpointIds, deferrals: [] })
  }

  /** What is left of a run that was begun a while ago; false where it would not come back within its window. */
  putOffLeft(
    work: Work,
    run: DeferredRun,
    destination: DestinationRuntime,
    offsets: readonly number[],
  ): boolean {
    const { policy } = destination
    if (!fits(policy, policy.tiers[0]!, run.firstScheduledAt, Date.now())) return false
    this.putOffHeld(work, run, destination, offsets)
    return true
  }

  /** A run that came due, or what is left of it, and that nobody is to get any more. */
  skipRun(work: Work, run: DeferredRun, count: number, reason: SkipReason): void {
    const { ledger, metrics } = this.#parts
    metrics.destination(run.destinationId).disposition('skipped', count)
    ledger.runEnded(work, run, 'skipped', reason)
    finishMany(work, ledger.codes.code(run.destinationId, 'skipped', reason), count)
  }

  /** A run that came due while its destination is paused, as a whole. */
  holdRun(work: Work, run: DeferredRun, count: number, destination: DestinationRuntime): void {
    const { ledger } = this.#parts
    destination.metrics.disposition('held', count)
    finishMany(work, ledger.codes.held({ ...pauseOf(destination), urlId: run.urlId }), count)
  }

  /** A call of a run that cannot be read any more: there is nothing left to send. */
  loseCall(work: Work, delivery: Delivery, why: string): void {
    const { log, metrics, budget } = this.#parts
    const { destinationId, origin } = delivery
    const { topic, partition, offset } = origin
    metrics.lostOffsets(topic, 1)
    log.error(
      { topic, partition, offset, destination: destinationId },
      `a call that was put off is gone before its time: ${why}`,
    )
    budget.reserve(0)
    this.#deadLetters.writeDelivery(work, null, 'call_removed', why, delivery, Date.now())
  }

  /** A delivery of which no request can be made. Nothing was sent. */
  unrenderable(work: Work, key: string | null, delivery: Delivery, { message }: Unrenderable): void {
    if (this.#parts.erased.isUnsentErased(delivery, key)) {
      this.eraseRetry(work, delivery)
      return
    }
    this.#parts.budget.reserve(0)
    this.#deadLetters.writeDelivery(work, keyBytes(key), 'unrenderable', message, delivery, Date.now())
  }

  finish(active: ActiveDelivery, endpoint: EndpointQueue, { durationMs }: Outcome): void {
    this.#endWith(active, 'delivered', this.#parts.ledger.codes.delivered(endpoint, durationMs))
  }

  abandon({ delivery }: ActiveDelivery): void {
    this.#parts.budget.free(delivery.body.length)
  }

  isRevoked(active: ActiveDelivery): boolean {
    return this.#parts.erased.isDeliveryErased(active) || this.#isSuppressed(active)
  }

  #isSuppressed({ wasScheduled, delivery, key }: ActiveDelivery): boolean {
    return wasScheduled && this.#parts.suppressed.isRetrySuppressed(delivery, key)
  }

  isExpired({ delivery, destination }: ActiveDelivery): boolean {
    return isExpired(delivery, Date.now(), destination.policy)
  }

  /** A deletion request covers a retry that came due, or a delivery of which nothing can be sent. */
  eraseRetry(work: Work, delivery: Delivery): void {
    const { ledger, metrics } = this.#parts
    metrics.destination(delivery.destinationId).disposition('erased')
    ledger.moved(work, delivery, 'erased', {})
    work.finishOne(ledger.codes.code(delivery.destinationId, 'erased'))
  }

  /** A retry that came due and is not to be sent. */
  skipRetry(work: Work, retry: RetryDelivery, reason: SkipReason): void {
    const { ledger, metrics } = this.#parts
    metrics.destination(retry.destinationId).disposition('skipped')
    ledger.moved(work, retry, 'skipped', { reason })
    work.finishOne(ledger.codes.code(retry.destinationId, 'skipped', reason))
  }

  /** A call that no destination gets. */
  skipRecord(work: Work, call: AnalyticsCall, reason: SkipReason): void {
    const { ledger, metrics } = this.#parts
    metrics.destination('none').disposition('skipped')
    ledger.recordDisposed(work, 'skipped', { reason }, call)
    work.finishOne(ledger.codes.code(null, 'skipped', reason))
  }

  /** A call that this destination does not get: its part of the record is done. */
  skipUnwanted(work: Work, { id, metrics }: DestinationRuntime, reason: SkipReason): void {
    metrics.disposition('skipped')
    work.finishOne(this.#parts.ledger.codes.code(id, 'skipped', reason))
  }

  /** The delivery is kept, with the stack of an exception that should not be, and the partition goes on. */
  fail(active: ActiveDelivery, error: unknown): void {
    const isOurs = !(error instanceof Unrenderable)
    if (isOurs)
      this.#parts.log.error(
        { delivery: active.delivery.id, err: error },
        'a delivery could not be sent for a bug of ours',
      )
    if (this.#parts.erased.isDeliveryErased(active)) {
      this.#end(active, 'erased')
      return
    }
    const endpointIds = active.destination.endpoints.map(({ id }) => id)
    const [reason, detail] = isOurs
      ? (['internal_error', stackOf(error)] as const)
      : (['unrenderable', error.message] as const)
    this.#deadDelivery(active, reason, detail, endpointIds, Date.now())
  }

  /** A retry that came due before its `notBefore`: on to the next tier, without an attempt. */
  hop(work: Work, key: string | null, tier: Tier, delivery: Delivery): void {
    const now = Date.now()
    this.#parts.budget.reserve(delivery.body.length)
    const next = { ...delivery, timesScheduled: delivery.timesScheduled + 1 }
    this.#retries.write(work, key, tier, next, now, 'deferred', null)
  }

  /** A retry that came due after its window had ended: it is kept, and not attempted. */
  expire(work: Work, key: string | null, retry: Delivery): void {
    this.#parts.budget.reserve(retry.body.length)
    const detail = 'its retry window had ended when it came due'
    this.#deadLetters.writeDelivery(work, keyBytes(key), expiryReason(retry), detail, retry, Date.now())
  }

  /**
   * A record that never becomes a delivery: kept as it came. `call` is what it holds, as far as it can be read, `about`
   * what is known of the call that it is about.
   */
  deadRecord(
    work: Work,
    record: FetchedRecord,
    reason: DeadLetterReason,
    detail: string,
    call: AnalyticsCall | null,
    about: Pick<AnalyticsCall, 'messageId' | 'sourceId' | 'type'> | null = call,
  ): void {
    const { ledger } = this.#parts
    if (this.#parts.erased.isRecordErased(work, record.key, call, reason)) {
      this.#parts.metrics.destination('none').disposition('erased')
      ledger.recordDisposed(work, 'erased', {}, about)
      work.finishOne(ledger.codes.code(null, 'erased'))
      return
    }
    const bytes = record.value?.length ?? 0
    this.#parts.budget.reserve(bytes)
    const kept = { reason, detail, delivery: null, raw: record.value, rawKey: record.key }
    const deadLetter = deadLetterOf(work, kept, Date.now())
    this.#parts.log.warn(
      { reason, detail: firstLine(detail), ...deadLetter.origin },
      'a record is kept as a dead letter',
    )
    const done = () => {
      const metrics = this.#parts.metrics.destination('none')
      metrics.deadLetter(reason)
      metrics.disposition('dead_lettered')
      ledger.recordDisposed(work, 'dead_lettered', { reason, detail: firstLine(detail) }, about)
      this.#parts.budget.free(bytes)
      work.finishOne(ledger.codes.code(null, 'dead_lettered', reason))
    }
    this.#deadLetters.write(work, deadLetter, bytes, done)
  }

  /** Everything published for the delivery must be with the broker. */
  #end(active: ActiveDelivery, disposition: DispositionLabel, details: DispositionDetails = {}): void {
    const { codes } = this.#parts.ledger
    const code = codes.code(active.delivery.destinationId, disposition, details.reason)
    this.#endWith(active, disposition, code, details)
  }

  #endWith(
    active: ActiveDelivery,
    disposition: DispositionLabel,
    code: number,
    details?: DispositionDetails,
  ): void {
    const { ledger, budget } = this.#parts
    const { delivery, destination, work } = active
    destination.metrics.disposition(disposition)
    ledger.disposed(active, disposition, details)
    budget.free(delivery.body.length)
    work.finishOne(code)
  }

  #deadDelivery(
    active: ActiveDelivery,
    reason: DeadLetterReason,
    detail: string | null,
    endpointIds: readonly string[],
    now: number,
  ): void {
    const { delivery, destination, work, key, attempts, firstAttemptAt, outcomes } = active
    const done = () => {
      destination.metrics.deadLetter(reason)
      this.#end(active, 'dead_lettered', { reason })
    }
    const round = { outcomes: outcomes ?? [], attempts, firstAttemptAt }
    const failed = afterRound(delivery, round, { endpointIds, notBefore: null, scheduledAt: null })
    const kept = { reason, detail, delivery: failed, raw: null, rawKey: keyBytes(key) }
    this.#deadLetters.write(work, deadLetterOf(work, kept, now), delivery.body.length, done)
  }
}

/** That it is due within the window still when it waited to be published. */
const fits = ({ windowMs }: RetryPolicy, tier: Tier, firstScheduledAt: number | null, now: number): boolean =>
  now + lingerMs + tier.delayMs <= (firstScheduledAt ?? now) + windowMs

function finishMany(work: Work, result: number, count: number): void {
  for (let left = count; left > 0; left--) work.finishOne(result)
}

/** The destination must be paused. A retry is the only delivery of its record, whatever its URL. */
const pauseOf = ({ id, pauseId, urlId }: DestinationRuntime): HeldBy => ({
  destinationId: id,
  pauseId: pauseId!,
  urlId,
})

const skipReasonOf = ({ destination }: ActiveDelivery): SkipReason =>
  destination.enabled ? 'urls_removed' : 'destination_disabled'

/** In the order of the destination's URLs. */
function outcomesOf({ outcomes, destination }: ActiveDelivery): readonly RoundOutcome[] {
  const all = outcomes ?? []
  if (all.length < 2) return all
  const order = destination.endpoints.map(({ id }) => id)
  return all.sort((a, b) => order.indexOf(a.endpointId) - order.indexOf(b.endpointId))
}

const notAttempted = ({ timesScheduled }: Delivery): string =>
  `it was put off ${timesScheduled} times: its endpoint took nothing, it answered too slowly for an attempt of each call, or its destination was at its limit`

const keyBytes = (key: string | null): Uint8Array | null => (key === null ? null : ownBytes(key, 'latin1'))

const firstLine = (text: string): string => text.split('\n', 1)[0]!
