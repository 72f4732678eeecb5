import type { Tier } from '../topics.ts'
import type { DeadLetterReason, Delivery, EndpointOutcome, LastResponse } from './delivery.ts'
import type { LastExchange } from './exchange.ts'
import { canRetry, isPutOff, isUnsent, type Outcome, deferredOutcome } from './outcome.ts'

export interface RetryPolicy {
  /** Ascending by delay, at least one. */
  tiers: readonly Tier[]
  /** From the first attempt, or from the first time it was scheduled where there was none before, in ms. */
  windowMs: number
  /** A failed attempt is the last one at its endpoint: only what was put off waits in a tier. */
  isOneAttempt?: boolean
}

/** How one round of sending (all endpoints still to try, at once) ended for a delivery. */
export interface Round {
  /** One per endpoint tried or deferred, in the order of the destination's URLs. */
  outcomes: readonly { endpointId: string; outcome: Outcome }[]
  /** How the attempts of earlier rounds ended, by endpoint. */
  earlier: Delivery['outcomes']
  /** Rounds that reached an endpoint, this one included. */
  attempts: number
  timesScheduled: number
  firstAttemptAt: number | null
  firstScheduledAt: number | null
  now: number
}

/** What becomes of a delivery. */
export type Disposition =
  | { kind: 'delivered' }
  | {
      kind: 'retry'
      tier: Tier
      endpointIds: string[]
      /** Not before this time although the tier may be due (Retry-After); null when the tier is all. */
      notBefore: number | null
      /** No endpoint was reached in this round. */
      deferred: boolean
    }
  | { kind: 'dead_letter'; reason: DeadLetterReason }

const finalReasons: Partial<Record<Outcome['kind'], DeadLetterReason>> = {
  status_4xx: 'rejected',
  gone: 'gone',
  redirect: 'redirect',
}

/** The one place that decides what becomes of a delivery (docs/delivery.md, the table of outcomes). */
export function decide(round: Round, policy: RetryPolicy): Disposition {
  if (round.outcomes.some(({ outcome }) => outcome.kind === 'success')) return { kind: 'delivered' }
  const retriable = round.outcomes.filter(({ outcome }) => canRetry(outcome))
  if (retriable.length === 0) {
    const first = round.outcomes[0]
    return { kind: 'dead_letter', reason: (first && finalReasons[first.outcome.kind]) ?? 'internal_error' }
  }
  const again = policy.isOneAttempt ? retriable.filter(({ outcome }) => isPutOff(outcome.kind)) : retriable
  if (again.length === 0) return { kind: 'dead_letter', reason: reasonOf(round, retriable) }
  const deadline = windowEnd(round, round.now, policy)
  const { asked, closed, hasPlaceThen } = waits(again.map(({ outcome }) => outcome))
  const min = Math.max(asked, closed)
  const deferred = again.every(({ outcome }) => isPutOff(outcome.kind))
  // The next tier after each failed attempt. How often it was put off says nothing about that.
  const step = deferred ? round.timesScheduled : Math.max(round.attempts, 1) - 1
  const stepMs = hasPlaceThen ? 0 : policy.tiers[Math.min(step, policy.tiers.length - 1)]!.delayMs
  const wait = min > stepMs ? Math.min(round.now + min, deadline) - round.now : stepMs
  const tier = chooseTier(round.now, wait, deadline, policy)
  if (!tier) return { kind: 'dead_letter', reason: reasonOf(round, again) }
  return {
    kind: 'retry',
    tier,
    endpointIds: again.map(({ endpointId }) => endpointId),
    notBefore: asked > 0 ? Math.min(round.now + asked, deadline) : null,
    deferred,
  }
}

/** Why it ends with this round, in which these could have been retried. */
function reasonOf({ attempts, earlier }: Round, ended: Round['outcomes']): DeadLetterReason {
  const now = ended.map(({ endpointId, outcome: { kind } }) => ({ endpointId, kind }))
  const outcomes = [...now, ...earlier].filter(({ kind }) => kind !== 'deferred')
  return expiryReason({ attempts, outcomes, endpointIds: ended.map(idOf) })
}

/**
 * What there is to wait for, in ms: `asked` of this delivery by Retry-After, and `closed` while none of the endpoints
 * takes anything. Where one of them may take it sooner, it is tried sooner. `hasPlaceThen`: one of them works, so longer
 * and longer waits would only leave it idle.
 */
function waits(outcomes: readonly Outcome[]): { asked: number; closed: number; hasPlaceThen: boolean } {
  const of = ({ retryAfterMs }: Outcome) => retryAfterMs ?? 0
  const reached = outcomes.filter(({ kind }) => !isPutOff(kind))
  if (reached.length > 0) return { asked: Math.max(...reached.map(of)), closed: 0, hasPlaceThen: false }
  const working = outcomes.filter((outcome) => outcome.hasPlaceThen)
  const hasPlaceThen = working.length > 0
  return { asked: 0, closed: Math.min(...(hasPlaceThen ? working : outcomes).map(of)), hasPlaceThen }
}

/**
 * A delivery came due in its tier before its `notBefore`: the tier to wait on in, without an attempt. Null: try
 * now, since the time has come or no tier fits into what is left of the window.
 */
export function hopTier(
  record: WindowTimes & Pick<Delivery, 'notBefore'>,
  now: number,
  policy: RetryPolicy,
): Tier | null {
  if (record.notBefore === null || record.notBefore <= now) return null
  return chooseTier(now, record.notBefore - now, windowEnd(record, now, policy), policy)
}

/**
 * When a retry is made that waits in memory, and in no tier. Asked to wait beyond its window, it is tried while the shortest
 * tier still fits into that: with its end no attempt is made any more.
 */
export function retryAt(
  { tier, notBefore }: Extract<Disposition, { kind: 'retry' }>,
  { now, ...times }: WindowTimes & Pick<Round, 'now'>,
  policy: RetryPolicy,
): number {
  const end = windowEnd(times, now, policy)
  const asked = notBefore === null || notBefore < end ? notBefore : end - policy.tiers[0]!.delayMs
  return Math.max(now + tier.delayMs, asked ?? 0)
}

/** The window of a delivery that waited in a tier has ended: no attempt is made any more, however late it is taken up. */
export function isExpired(record: WindowTimes, now: number, policy: RetryPolicy): boolean {
  return now > windowEnd(record, now, policy)
}

/** Half of the window: until then a breaker that is open keeps it from being attempted. */
const ownAttemptShare = 0.5

/**
 * A delivery that was only ever put off has waited for so long that it gets an attempt of its own when it comes due, be
 * the breaker open or not: none is to end without one where its endpoint answers at all.
 */
export function isOwnAttemptDue(
  { attempts, firstScheduledAt }: Pick<Delivery, 'attempts' | 'firstScheduledAt'>,
  now: number,
  { windowMs }: RetryPolicy,
): boolean {
  return attempts === 0 && firstScheduledAt !== null && now >= firstScheduledAt + windowMs * ownAttemptShare
}

const idOf = ({ endpointId }: { endpointId: string }): string => endpointId

/**
 * Why a delivery ends with its window: there was no token for it, it was never attempted, or nothing could be sent to any of its endpoints, or the time
 * is over.
 * @param outcomes of attempts, the latest of each endpoint first
 */
export function expiryReason({ attempts, outcomes, endpointIds }: ExpiredDelivery): DeadLetterReason {
  const last = endpointIds.flatMap((id) => outcomes.find(({ endpointId }) => endpointId === id)?.kind ?? [])
  const [first] = last
  // Of one that was only ever put off there is no other outcome.
  if (attempts === 0) return first === 'no_token' ? first : 'not_attempted'
  return first !== undefined && isUnsent(first) && last.every(isUnsent) ? first : 'expired'
}

type ExpiredDelivery = Pick<Delivery, 'attempts' | 'endpointIds'> & {
  outcomes: readonly { endpointId: string; kind: Outcome['kind'] }[]
}

type WindowTimes = Pick<Delivery, 'firstAttemptAt' | 'firstScheduledAt'>

function windowEnd(
  { firstAttemptAt, firstScheduledAt }: WindowTimes,
  now: number,
  policy: RetryPolicy,
): number {
  // A delivery scheduled before any attempt began its window then; the first attempt does not restart it.
  return Math.min(firstAttemptAt ?? now, firstScheduledAt ?? now) + policy.windowMs
}

/** The smallest tier that covers the wait; if that would overshoot the window, the largest that fits. */
function chooseTier(now: number, wait: number, deadline: number, policy: RetryPolicy): Tier | null {
  const covering = policy.tiers.find((tier) => tier.delayMs >= wait) ?? policy.tiers[policy.tiers.length - 1]!
  if (now + covering.delayMs <= deadline) return covering
  return policy.tiers.findLast((tier) => now + tier.delayMs <= deadline) ?? null
}

/** The closed set of why a delivery is not attempted at an endpoint now. */
export const deferralReasons = [
  'breaker',
  'paused',
  'budget',
  'slow',
  'busy_key',
  'limited',
  'not_set_up',
  'no_token',
  'order',
] as const
export type DeferralReason = (typeof deferralReasons)[number]

export interface Deferral {
  reason: DeferralReason
  /** The endpoint takes nothing for so long, in ms; 0 when that is not known. Where it is too slow: see ReturnTimes. */
  waitMs: number
}

/** The endpoint works, and more comes than it can take or may get. */
export const isTooSlow = (reason: DeferralReason): boolean =>
  reason === 'slow' || reason === 'busy_key' || reason === 'limited'

const details: Record<DeferralReason, string> = {
  breaker: 'the endpoint fails: its circuit breaker is open',
  paused: 'the endpoint asked for a pause (Retry-After)',
  budget: 'too many retries fail at the endpoint: its retry budget is used up',
  slow: 'the endpoint is too slow and was holding back calls for other endpoints',
  busy_key: 'too many calls of one user wait for one another at this destination',
  limited: 'the destination is at its limit (--max-rate, --max-in-flight) and was holding back other calls',
  not_set_up: 'the destination cannot be set up: the log of the forwarder says why',
  no_token: 'its login fails: no OAuth2 token can be had, and the log of the forwarder says why',
  order: 'an earlier call of its user has failed, and is waited for',
}

export function deferredBy({ reason, waitMs }: Deferral): Outcome {
  const outcome = { ...deferredOutcome(details[reason]), retryAfterMs: waitMs > 0 ? waitMs : null }
  if (reason === 'no_token') return { ...outcome, kind: reason }
  return isTooSlow(reason) ? { ...outcome, hasPlaceThen: true } : outcome
}

/** The outcome of one endpoint in a round of sending. */
export interface RoundOutcome {
  readonly endpointId: string
  readonly outcome: Outcome
  /** Epoch ms. */
  readonly at: number
}

/** How a round of sending went that did not end with a success. */
export interface EndedRound {
  readonly outcomes: readonly RoundOutcome[]
  /** Rounds that reached an endpoint, this one included. */
  readonly attempts: number
  readonly firstAttemptAt: number | null
}

/** What is to become of it: a retry that is scheduled now, or a dead letter (`scheduledAt` is null). */
export interface NextRound {
  readonly endpointIds: readonly string[]
  readonly notBefore: number | null
  readonly scheduledAt: number | null
}

/** The delivery as it goes into a tier or a dead letter after a round. */
export function afterRound(delivery: Delivery, round: EndedRound, next: NextRound): Delivery {
  const { scheduledAt } = next
  return {
    id: delivery.id,
    messageId: delivery.messageId,
    sourceId: delivery.sourceId,
    destinationId: delivery.destinationId,
    userIds: delivery.userIds,
    type: delivery.type,
    body: delivery.body,
    filled: delivery.filled,
    endpointIds: next.endpointIds,
    attempts: round.attempts,
    timesScheduled: delivery.timesScheduled + (scheduledAt === null ? 0 : 1),
    firstAttemptAt: round.firstAttemptAt,
    firstScheduledAt: delivery.firstScheduledAt ?? scheduledAt,
    notBefore: next.notBefore,
    outcomes: history(delivery, round),
    lastResponse: lastResponse(round) ?? delivery.lastResponse,
    lastExchange: lastExchange(round) ?? delivery.lastExchange,
    origin: delivery.origin,
  }
}

function history(delivery: Delivery, round: EndedRound): EndpointOutcome[] {
  const all = [...delivery.outcomes]
  for (const { endpointId, outcome, at } of round.outcomes) {
    const { kind, status, durationMs, detail } = outcome
    const latest = { endpointId, kind, status, durationMs, at, detail }
    const before = all.findIndex((earlier) => earlier.endpointId === endpointId)
    if (before < 0) all.push(latest)
    // An attempt says more than that it was put off since.
    else if (!isPutOff(kind) || (kind === 'no_token' && all[before]!.kind === 'deferred'))
      all[before] = latest
  }
  return all
}

/** The attempt that says most of the round: the last one that was answered. */
const lastAnswered = ({ outcomes }: EndedRound) => outcomes.findLast(({ outcome }) => outcome.status !== null)

function lastExchange(round: EndedRound): LastExchange | null {
  const last = lastAnswered(round) ?? round.outcomes.findLast(({ outcome }) => outcome.exchange)
  if (!last?.outcome.exchange) return null
  const { endpointId, outcome, at } = last
  return { ...outcome.exchange!, endpointId, at }
}

function lastResponse(round: EndedRound): LastResponse | null {
  const last = lastAnswered(round)
  if (!last) return null
  const { endpointId, outcome, at } = last
  return {
    endpointId,
    status: outcome.status!,
    body: outcome.body ?? new Uint8Array(0),
    durationMs: outcome.durationMs,
    at,
  }
}
