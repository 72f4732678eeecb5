import { createHmac } from 'node:crypto'
import type { AnalyticsCall } from '../src/core/call/analytics-call.ts'

export const sharedSecret = 'a shared secret of some length'

/** The nth call of a backlog, as JavaScript SDKs write it: about 300 B as a body, users in turns. The same at every run. */
export function nthCall(index: number, users: number, sourceId = 'shop'): AnalyticsCall {
  const user = (index * 7_919) % users
  return {
    messageId: `bench-${index.toString().padStart(10, '0')}`,
    sourceId,
    type: 'track',
    userId: `user-${user.toString().padStart(7, '0')}`,
    anonymousId: null,
    previousId: null,
    groupId: null,
    event: 'Order Completed',
    name: null,
    category: null,
    channel: null,
    timestamp: 1_767_225_600_000 + index,
    originalTimestamp: null,
    receivedAt: 1_767_225_600_500 + index,
    sentAt: null,
    properties: `{"orderId":"order-${index}","total":27.5,"currency":"EUR","products":["shoe","sock"]}`,
    traits: null,
    context: '{"ip":"203.0.113.7","library":{"name":"bench","version":"1.0.0"}}',
    integrations: null,
  }
}

/** An independent computation of what X-Signature must be. */
export const signatureOf = (body: string): string =>
  createHmac('sha1', sharedSecret).update(body).digest('hex')
