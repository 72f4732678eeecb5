import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { isoOf } from '../../core/duration.ts'
import type { DeliveryLife, DeliveryState } from '../../core/ledger/delivery-life.ts'
import type { FactsOptions, FoundCall, MessagePorts } from './facts.ts'
import { livesOf } from './why.ts'

/** Times are epoch ms; null: any. */
export interface UserFilter {
  since: number | null
  until: number | null
  /** An event, or the name of a page or screen, exactly so. */
  event: string | null
}

type Ended = Pick<DeliveryLife, 'destinationId' | 'urlId' | 'state'>

/** A call, and what became of its deliveries. */
export interface UserCall extends FoundCall {
  deliveries: Ended[]
  /** Of a call that came to no delivery. */
  record: DeliveryState | null
}

export interface UserPage<T extends FoundCall = FoundCall> {
  calls: T[]
  /** Epoch ms: what is older was not looked through; null: all that is kept was. */
  indexedSince: number | null
  /** Null on the last one. */
  next: number | null
}

export interface AskedUserPage {
  before: number | null
  limit: number
}

/** A page of one user's calls, the newest first, with what became of them. @param outcome of any of their deliveries */
export async function messagesOfUser(
  userId: string,
  { outcome, ...filter }: UserFilter & { outcome: DeliveryState | null },
  ports: MessagePorts,
  asked: AskedUserPage,
  options: FactsOptions = {},
): Promise<UserPage<UserCall>> {
  const page = await callsOfUser(userId, filter, ports, asked, options)
  const ids = [...new Set(page.calls.map(({ call }) => call.messageId))]
  const lives = ids.length === 0 ? [] : await livesOf(ids, ports, { signal: options.signal })
  const copies = new Map(
    lives.flatMap((life) => life.copies.map((copy) => [placeText(copy.place), copy] as const)),
  )
  const calls = page.calls.flatMap((call): UserCall[] => {
    const copy = copies.get(placeText(call.place))
    // A deletion request came meanwhile.
    if (copy?.erased) return []
    const { deliveries = [], record = null } = copy?.life ?? {}
    const states = [...deliveries.map(({ state }) => state), ...(record ? [record.state] : [])]
    if (outcome !== null && !states.includes(outcome)) return []
    return [{ ...call, deliveries, record: record && record.state }]
  })
  return { ...page, calls }
}

const placeText = ({ partition, offset }: FoundCall['place']): string => `${partition} ${offset}`

/** Those that a deletion request covers are left out. */
async function callsOfUser(
  userId: string,
  { since, until, event }: UserFilter,
  ports: Pick<MessagePorts, 'callsOfUser' | 'erasures'>,
  { before, limit }: AskedUserPage,
  options: FactsOptions,
): Promise<UserPage> {
  const { calls, indexedSince, next } = await ports.callsOfUser(userId, before, limit, options)
  // After the calls: users erased before they were read are known then.
  const erasures = await ports.erasures(options.signal)
  const isShown = ({ call, appendedAt }: FoundCall): boolean => {
    if ((since !== null && appendedAt < since) || (until !== null && appendedAt >= until)) return false
    if (event !== null && !isCalled(call, event)) return false
    return !isErasedBy(erasures, { call, appendedAt })
  }
  // The calls of one user lie in one partition: all that follow are older still.
  const isOver = since !== null && calls.length > 0 && calls.every(({ appendedAt }) => appendedAt < since)
  return { calls: calls.filter(isShown), indexedSince, next: isOver ? null : next }
}

function isErasedBy(
  erasures: Awaited<ReturnType<MessagePorts['erasures']>>,
  { call, appendedAt }: Pick<FoundCall, 'call' | 'appendedAt'>,
): boolean {
  const { sourceId, type } = call
  return erasures.covers({ sourceId: sourceId || null, type, userIds: usersOf(call), appendedAt })
}

const isCalled = ({ event, name }: AnalyticsCall, wanted: string): boolean => (event ?? name) === wanted

/** How far the calls of a user are looked through for their attempts. */
const maxUserCalls = 200

/** The messageIds of a user's newest calls. */
export async function messageIdsOf(
  userId: string,
  filter: Pick<UserFilter, 'since' | 'event'>,
  ports: Pick<MessagePorts, 'callsOfUser' | 'erasures'>,
  options: FactsOptions = {},
): Promise<Set<string>> {
  const any = { ...filter, until: null }
  const { calls } = await callsOfUser(userId, any, ports, { before: null, limit: maxUserCalls }, options)
  return new Set(calls.map(({ call }) => call.messageId))
}

/** Those of the messages that are of an event. Of one that is gone from Kafka, or erased, nobody can say that. */
export async function messagesOfEvent(
  event: string,
  messageIds: readonly string[],
  ports: Pick<MessagePorts, 'facts' | 'erasures'>,
  options: FactsOptions = {},
): Promise<Set<string>> {
  const found = await callsOfMessages(messageIds, ports, options)
  return new Set(found.filter((call) => isCalled(call, event)).map(({ messageId }) => messageId))
}

/** The calls of the messages that are there and not erased, of each the oldest first. */
export async function callsOfMessages(
  messageIds: readonly string[],
  ports: Pick<MessagePorts, 'facts' | 'erasures'>,
  options: FactsOptions = {},
): Promise<AnalyticsCall[]> {
  const ids = [...new Set(messageIds)]
  if (ids.length === 0) return []
  const found = (await ports.facts(ids, options)).flatMap(({ calls }) => calls)
  // After the calls, as above.
  const erasures = await ports.erasures(options.signal)
  return found
    .filter((each) => !isErasedBy(erasures, each))
    .toSorted((a, b) => a.appendedAt - b.appendedAt)
    .map(({ call }) => call)
}

export function userMessageView({ place, appendedAt, writer, call, deliveries, record }: UserCall) {
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
    deliveries: deliveries.map(({ destinationId, urlId, state }) => ({ destinationId, urlId, state })),
    record,
  }
}
