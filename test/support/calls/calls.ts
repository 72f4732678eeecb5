import type { AnalyticsCall } from '../../../src/core/call/analytics-call.ts'

/** A valid track call; what a test is about is given. */
export function someCall(given: Partial<AnalyticsCall> = {}): AnalyticsCall {
  return {
    messageId: 'm-1',
    sourceId: 'shop',
    type: 'track',
    userId: 'u-1',
    anonymousId: null,
    previousId: null,
    groupId: null,
    event: 'Order Completed',
    name: null,
    category: null,
    channel: null,
    timestamp: Date.UTC(2026, 0, 2, 3, 4, 5, 6),
    originalTimestamp: null,
    receivedAt: Date.UTC(2026, 0, 2, 3, 4, 6, 0),
    sentAt: null,
    properties: null,
    traits: null,
    context: null,
    integrations: null,
    ...given,
  }
}
