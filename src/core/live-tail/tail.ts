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

/** The maximum number of calls that a tail shows in a second. */
export const maxCallsPerSecond = 100

/** What a tail did not show within a second or more. */
export interface NotShown {
  /** Beyond the rate. */
  sampled: number
  /** Because its reader was too slow. */
  dropped: number
}

/**
 * Shows the first hundred calls of each second, and counts the others. What its reader has no room for is counted apart.
 */
export class TailSample {
  #secondAt = -Infinity
  #inSecond = 0
  #sampled = 0
  #dropped = 0

  /** @param now in ms, by any clock that never goes back */
  shows(hasRoom: boolean, now: number): boolean {
    if (now - this.#secondAt >= 1_000) {
      this.#secondAt = now
      this.#inSecond = 0
    }
    if (this.#inSecond >= maxCallsPerSecond) this.#sampled++
    else if (!hasRoom) this.#dropped++
    else {
      this.#inSecond++
      return true
    }
    return false
  }

  /** What was not shown since the last time that it was asked; null for nothing. */
  takeLeftOut(): NotShown | null {
    const leftOut = { sampled: this.#sampled, dropped: this.#dropped }
    this.#sampled = this.#dropped = 0
    return leftOut.sampled + leftOut.dropped > 0 ? leftOut : null
  }
}
