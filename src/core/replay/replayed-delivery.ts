import { usersOf, type AnalyticsCall, type CallType } from '../call/analytics-call.ts'
import { newWindow } from '../delivery/replay.ts'
import { planCall } from '../delivery/call-plan.ts'
import { urlIdOf, type Delivery, type Origin, type RetryDelivery } from '../delivery/delivery.ts'
import type { PlannedDestination } from '../ledger/delivery-event.ts'
import type { Destination, SettingsState } from '../settings/settings.ts'
import type { CallRange, ReplayJob, ReplayKind } from './replay-job.ts'

/** As the owner of a record: `why` names the replay by it. */
export const replayOwner = (id: string): string => `replay/${id}`
export const replayOfOwner = (owner: string | null): string | null =>
  owner?.startsWith('replay/') ? owner.slice('replay/'.length) : null

type ChosenBy = Pick<CallRange, 'types' | 'events' | 'user' | 'messageId'>

/** Whether a call is one of those that a replay asks for. */
export function isChosen(call: AnalyticsCall, { types, events, user, messageId }: ChosenBy): boolean {
  const { type, event } = call
  if (messageId !== null && call.messageId !== messageId) return false
  if (user !== null && !usersOf(call).includes(user)) return false
  if (types !== null && !types.includes(type as CallType)) return false
  if (events === null) return true
  // Names of events alone ask for `track` calls alone.
  return type === 'track' ? event !== null && events.includes(event) : types !== null
}

/**
 * The deliveries that today's settings plan of a call, as far as the replay wants them: what a destination does not
 * choose today it does not get, whatever it was when the call came in.
 */
export function replayPlan(
  call: AnalyticsCall,
  range: ChosenBy,
  destination: Destination,
  { sources }: Pick<SettingsState, 'sources'>,
): PlannedDestination[] {
  if (!isChosen(call, range)) return []
  const destinations = new Map([[destination.id, destination]])
  return (planCall(call, { sources, destinations }) ?? []).filter(({ reason }) => reason === null)
}

export interface ReplayedTerms {
  job: Pick<ReplayJob, 'id'>
  destination: Destination
  /** Epoch ms. */
  now: number
}

/**
 * The call's delivery, with a window of its own. What a receiver may have taken gets an id of its own as well, so that
 * its Idempotency-Key does not stand for two deliveries; the messageId is the call's.
 */
export function replayedCall(
  call: AnalyticsCall,
  { body, filled }: Pick<Delivery, 'body' | 'filled'>,
  origin: Origin,
  id: string,
  kind: ReplayKind,
  { job, destination, now }: ReplayedTerms,
): RetryDelivery {
  const { messageId, sourceId, type } = call
  const urlId = urlIdOf({ id, messageId, destinationId: destination.id })
  return {
    id: kind === 'delivered' ? `${id}:${job.id}` : id,
    messageId,
    sourceId,
    destinationId: destination.id,
    userIds: usersOf(call),
    type: type as Exclude<typeof type, 'unknown'>,
    body,
    filled,
    endpointIds: urlId === null ? destination.urls.map((url) => url.id) : [urlId],
    origin,
    ...newWindow(now),
    owner: replayOwner(job.id),
  }
}

/**
 * A retry that was held goes on where it was: its attempts, its body and its id are the same, and its window is later by
 * the time that passed since it was due.
 */
export function heldRetryAgain(
  retry: RetryDelivery,
  { job, now, dueAt }: Omit<ReplayedTerms, 'destination'> & { dueAt: number },
): RetryDelivery {
  const waited = Math.max(0, now - dueAt)
  const later = (at: number | null) => (at === null ? null : at + waited)
  return {
    ...retry,
    firstAttemptAt: later(retry.firstAttemptAt),
    firstScheduledAt: later(retry.firstScheduledAt),
    notBefore: null,
    scheduledAt: now,
    owner: replayOwner(job.id),
    from: null,
  }
}
