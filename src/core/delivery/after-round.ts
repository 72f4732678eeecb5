import type { Delivery, EndpointOutcome, LastResponse } from './delivery.ts'
import type { Outcome } from './outcome.ts'

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
    endpointIds: next.endpointIds,
    attempts: round.attempts,
    timesScheduled: delivery.timesScheduled + (scheduledAt === null ? 0 : 1),
    firstAttemptAt: round.firstAttemptAt,
    firstScheduledAt: delivery.firstScheduledAt ?? scheduledAt,
    notBefore: next.notBefore,
    outcomes: history(delivery, round),
    lastResponse: lastResponse(round) ?? delivery.lastResponse,
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
    else if (kind !== 'deferred') all[before] = latest
  }
  return all
}

function lastResponse({ outcomes }: EndedRound): LastResponse | null {
  const last = outcomes.findLast(({ outcome }) => outcome.status !== null)
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
