import { absentFields, type AnalyticsCall } from '../call/analytics-call.ts'
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

/** A record where it lies in its topic; `membership` is null where it was taken away. */
export interface PlacedMembership {
  partition: number
  offset: number
  /** The broker's, epoch milliseconds. */
  timestamp: number
  audienceId: string
  userId: string
  membership: Membership | null
}

/** The key of its record. Ids of audiences hold no `/`. */
export const membershipKey = (audienceId: string, userId: string): string => `${audienceId}/${userId}`

/** Notifications go to webhooks only. */
const membershipIntegrations = '{"All":false,"Webhooks":true}'

/** What the notifications of an audience or computed trait have as their context. */
const membershipContext = ({ kind, key, id, sourceId }: Computation): string =>
  JSON.stringify({
    personas: {
      computation_class: kind,
      computation_id: id,
      computation_key: key,
      // A deployment is one tenant: the source is what stands for a space.
      namespace: sourceId,
      space_id: sourceId,
    },
  })

/** Which calls of a source are notifications of these, and none of its senders'. */
export class MembershipCalls {
  readonly #contexts: ReadonlySet<string>

  constructor(computations: Iterable<Computation>) {
    this.#contexts = new Set([...computations].map(membershipContext))
  }

  has({ type, context, integrations }: Pick<AnalyticsCall, 'type' | 'context' | 'integrations'>): boolean {
    return type === 'identify' && integrations === membershipIntegrations && this.#contexts.has(context ?? '')
  }
}

/**
 * Makes the identify calls by which destinations learn of memberships. The same membership always gives the same
 * call; `messageId` is a hash of audience, user and sync.
 */
export function membershipCalls(
  computation: Computation,
): (membership: Membership, messageId: string) => AnalyticsCall {
  const { kind, key, sourceId } = computation
  const traits = `{${JSON.stringify(key)}:`
  const context = membershipContext(computation)
  return ({ member, value, userId, at }, messageId) => ({
    ...absentFields,
    messageId,
    sourceId,
    type: 'identify',
    userId,
    timestamp: at,
    receivedAt: at,
    traits: `${traits}${kind === 'audience' ? String(member) : (value ?? 'null')}}`,
    context,
    integrations: membershipIntegrations,
  })
}
