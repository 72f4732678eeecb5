/** The call types of the tracking API, plus `delete`, which only Postrider itself makes. */
export const callTypes = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const
export type CallType = (typeof callTypes)[number]

/** A messageId has at most so many characters (UTF-16 units), however it is sent. */
export const maxMessageIdLength = 100

/**
 * One analytics call as it lies in `analytics.calls`. Times are milliseconds since the epoch, UTC.
 * `properties`, `traits`, `context` and `integrations` hold JSON text and reach the signed body as they are.
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
  timestamp: number
  receivedAt: number
  sentAt: number | null
  properties: string | null
  traits: string | null
  context: string | null
  integrations: string | null
}

/**
 * The key of a call's record: calls of one user lie in one partition, in order. userId, else anonymousId; alias:
 * previousId, so that it comes after the calls under the old id. An empty id counts as absent; null when there is
 * none, which no valid call has.
 */
export function partitionKey(
  call: Pick<AnalyticsCall, 'type' | 'userId' | 'anonymousId' | 'previousId'>,
): string | null {
  if (call.type === 'alias') return call.previousId || null
  return call.userId || call.anonymousId || null
}

/**
 * Whom a call is of, for deletion requests: its key, and the `userId` of an alias too, whose body holds both. (An
 * anonymousId beside a `userId` is not asked after: it may be shared.)
 */
export function usersOf(
  call: Pick<AnalyticsCall, 'type' | 'userId' | 'anonymousId' | 'previousId'>,
): string[] {
  const key = partitionKey(call)
  if (call.type === 'alias' && call.userId && call.userId !== key)
    return key ? [key, call.userId] : [call.userId]
  return key ? [key] : []
}
