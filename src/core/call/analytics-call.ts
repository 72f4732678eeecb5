/** The call types of the tracking API, plus `delete`, which only Postrider itself makes. */
export const callTypes = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const
export type CallType = (typeof callTypes)[number]

/** The maximum length of a messageId in characters (UTF-16 units), however it is sent. */
export const maxMessageIdLength = 100

/**
 * One analytics call as it lies in `analytics.calls`. Times are milliseconds since the epoch, UTC.
 * `properties`, `traits`, `context` and `integrations` hold JSON text, as it came; `checkCall` gives it the one form in
 * which it is signed.
 */
export interface AnalyticsCall {
  messageId: string
  sourceId: string
  type: CallType | 'unknown'
  userId: string | null
  anonymousId: string | null
  previousId: string | null
  groupId: string | null
  event: string | null
  name: string | null
  category: string | null
  /** Where it was made, in the client's words: `server`, `browser`, `mobile`. */
  channel: string | null
  timestamp: number
  /** `timestamp` as the client sent it, before its clock was corrected; null where it named no time. */
  originalTimestamp: number | null
  receivedAt: number
  sentAt: number | null
  properties: string | null
  traits: string | null
  context: string | null
  integrations: string | null
}

/** The rest of a call that says something about a user by Postrider itself. */
export const absentFields = {
  anonymousId: null,
  previousId: null,
  groupId: null,
  event: null,
  name: null,
  category: null,
  channel: null,
  originalTimestamp: null,
  sentAt: null,
  properties: null,
  traits: null,
  context: null,
  integrations: null,
} satisfies Partial<AnalyticsCall>

/**
 * The key of a call's record: calls of one user lie in one partition, in order. An alias goes by its `userId`, the new
 * id, so that it comes before the calls that are made under that id after it. An empty id counts as absent; null when
 * there is none, which no valid call has.
 */
export function partitionKey(call: Pick<AnalyticsCall, 'userId' | 'anonymousId'>): string | null {
  return call.userId || call.anonymousId || null
}

/**
 * The users of a call, for deletion requests: its key, and the `previousId` of an alias too, whose body holds both. (An
 * anonymousId beside a `userId` is not asked after: it may be shared.)
 */
export function usersOf(
  call: Pick<AnalyticsCall, 'type' | 'userId' | 'anonymousId' | 'previousId'>,
): string[] {
  const key = partitionKey(call)
  const ids = key === null ? [] : [key]
  if (call.type === 'alias' && call.previousId && call.previousId !== key) ids.push(call.previousId)
  return ids
}
