/** The call types of the tracking API, plus `delete`, which only Postrider itself makes. */
export const callTypes = ['identify', 'track', 'page', 'screen', 'group', 'alias', 'delete'] as const
export type CallType = (typeof callTypes)[number]

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
