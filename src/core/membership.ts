import type { AnalyticsCall } from './analytics-call.ts'
import type { Computation } from './computations.ts'

/** A record of `analytics.memberships`: the newest of a user is what holds (schemas/membership.avsc). */
export interface Membership {
  /** The audience's or computed trait's id. */
  audienceId: string
  userId: string
  /** Whether the user is in the audience, or has a value. */
  member: boolean
  /** JSON text; null for an audience, and for a user without a value. */
  value: string | null
  syncId: string
  /** Epoch milliseconds. */
  at: number
}

/** The key of its record. Ids of audiences hold no `/`. */
export const membershipKey = (audienceId: string, userId: string): string => `${audienceId}/${userId}`

/**
 * The identify call by which destinations learn of a membership. The same membership always gives the same call;
 * `messageId` is a hash of audience, user and sync.
 */
export function membershipCall(
  membership: Membership,
  { kind, key, id, sourceId }: Computation,
  messageId: string,
): AnalyticsCall {
  const { member, value, userId, at } = membership
  const told = kind === 'audience' ? String(member) : (value ?? 'null')
  const personas = {
    computation_class: kind,
    computation_id: id,
    computation_key: key,
    // A deployment is one tenant: the source is what stands for a space.
    namespace: sourceId,
    space_id: sourceId,
  }
  return {
    messageId,
    sourceId,
    type: 'identify',
    userId,
    anonymousId: null,
    previousId: null,
    groupId: null,
    event: null,
    name: null,
    category: null,
    timestamp: at,
    receivedAt: at,
    sentAt: null,
    properties: null,
    traits: `{${JSON.stringify(key)}:${told}}`,
    context: JSON.stringify({ personas }),
    integrations: '{"All":false,"Webhooks":true}',
  }
}
