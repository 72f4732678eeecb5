import { usersOf, type AnalyticsCall, type CallType } from '../call/analytics-call.ts'

/** Which calls of a source a tail shows; an empty list lets all through. */
export interface TailFilter {
  sourceId: string
  types: readonly CallType[]
  /** Names of `track` events, letter by letter. */
  events: readonly string[]
  /** A call's userId or anonymousId, or what an alias merges. */
  users: readonly string[]
}

export function isShown(
  { sourceId, types, events, users }: TailFilter,
  call: Pick<AnalyticsCall, 'sourceId' | 'type' | 'event' | 'userId' | 'anonymousId' | 'previousId'>,
): boolean {
  if (call.sourceId !== sourceId) return false
  if (types.length > 0 && !(types as readonly string[]).includes(call.type)) return false
  if (events.length > 0 && (call.event === null || !events.includes(call.event))) return false
  if (users.length === 0) return true
  const ids = [...usersOf(call), call.anonymousId]
  return users.some((user) => ids.includes(user))
}
