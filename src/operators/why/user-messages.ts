import { usersOf } from '../../core/call/analytics-call.ts'
import { isoOf } from '../../core/duration.ts'
import type { FactsOptions, FoundCall, MessagePorts } from './facts.ts'

/** Times are epoch ms; null: any. */
export interface UserFilter {
  since: number | null
  until: number | null
}

export interface UserPage {
  calls: FoundCall[]
  /** Epoch ms: what is older was not looked through; null: all that is kept was. */
  indexedSince: number | null
  /** Null on the last one. */
  next: number | null
}

/** A page of one user's calls, the newest first; calls that a deletion request covers are left out. */
export async function messagesOfUser(
  userId: string,
  { since, until }: UserFilter,
  ports: Pick<MessagePorts, 'callsOfUser' | 'erasures'>,
  { before, limit }: { before: number | null; limit: number },
  options: FactsOptions = {},
): Promise<UserPage> {
  const { calls, indexedSince, next } = await ports.callsOfUser(userId, before, limit, options)
  // After the calls: users erased before they were read are known then.
  const erasures = await ports.erasures(options.signal)
  const isShown = ({ call, appendedAt }: FoundCall): boolean => {
    if ((since !== null && appendedAt < since) || (until !== null && appendedAt >= until)) return false
    const { sourceId, type } = call
    return !erasures.covers({ sourceId: sourceId || null, type, userIds: usersOf(call), appendedAt })
  }
  // The calls of one user lie in one partition: all that follow are older still.
  const isOver = since !== null && calls.length > 0 && calls.every(({ appendedAt }) => appendedAt < since)
  return { calls: calls.filter(isShown), indexedSince, next: isOver ? null : next }
}

/** How far the calls of a user are looked through for their attempts. */
const maxUserCalls = 200

/** The messageIds of a user's newest calls. */
export async function messageIdsOf(
  userId: string,
  filter: UserFilter,
  ports: Pick<MessagePorts, 'callsOfUser' | 'erasures'>,
  options: FactsOptions = {},
): Promise<Set<string>> {
  const any = { since: filter.since, until: null }
  const { calls } = await messagesOfUser(userId, any, ports, { before: null, limit: maxUserCalls }, options)
  return new Set(calls.map(({ call }) => call.messageId))
}

export function userMessageView({ place, appendedAt, writer, call }: FoundCall) {
  const { messageId, type, sourceId, userId, anonymousId, event, name, timestamp, receivedAt } = call
  return {
    messageId,
    type,
    sourceId,
    userId,
    anonymousId,
    event,
    name,
    timestamp: isoOf(timestamp),
    receivedAt: isoOf(receivedAt),
    appendedAt: isoOf(appendedAt),
    receivedBy: writer,
    partition: place.partition,
    offset: place.offset,
  }
}
