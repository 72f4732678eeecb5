import { randomUUID } from 'node:crypto'
import { usersOf, type CallType } from '../core/call/analytics-call.ts'
import { readRequestCall, type RequestRules, type TrackingCall } from '../core/call/tracking-call.ts'
import { type CallFault, sharedMap, spansPerCall } from '../core/call/tracking-fields.ts'
import {
  isNoObject,
  isTooLarge,
  maxCallBytes,
  readTrackingRequest,
  type ReadRequest,
  type ScannedCalls,
  type TrackingRequest,
} from '../core/call/tracking-request.ts'
import type { Source } from '../core/settings/settings.ts'
import type { SuppressibleCall } from '../core/suppression/suppressions.ts'
import {
  faulty,
  maxNamed,
  notReadable,
  overloaded,
  overQuota,
  rateLimited,
  sourceDisabled,
  success,
  successBut,
  unavailable,
  writeKeyMissing,
  writeKeyUnknown,
  type CollectAnswer,
  type RejectedCall,
} from './answers.ts'
import { PendingCalls, type CallBatchSink } from './call-batch-sink.ts'
import { hygieneOf } from './call-hygiene.ts'
import type { CollectorMetrics } from './metrics.ts'
import type { RecentCalls } from './recent-calls.ts'
import type { Reservation } from './request-budget.ts'
import type { CallRoute } from './routes.ts'
import type { SourceRates } from './source-rates.ts'
import type { WriteKeys } from './write-keys.ts'

/** The source of a request, its refusal, or null while its source is not known. */
export type Admission = Source | CollectAnswer | null

/** Sources that are not known share one label. */
const unknownSource = 'unknown'

/**
 * Turns requests into calls in Kafka. 200 says that each call that is not named in `rejected` is acknowledged by all
 * in-sync replicas; whatever could be lost is answered 429 or 503, after which the same request can be sent again.
 * Calls of suppressed users, and of bots where their source drops them, are the exception: they are dropped, and answered as
 * if they were not. No SDK should try again or report an error, and write keys are public: an answer of its own would say
 * who is suppressed.
 */
export class Collector {
  readonly #keys: WriteKeys
  readonly #recent: RecentCalls
  readonly #sink: CallBatchSink
  readonly #metrics: CollectorMetrics
  readonly #rates: SourceRates
  readonly #suppressions: SuppressionView
  readonly #now: () => number

  constructor(parts: {
    keys: WriteKeys
    recent: RecentCalls
    sink: CallBatchSink
    metrics: CollectorMetrics
    rates: SourceRates
    suppressions: SuppressionView
    /** Epoch milliseconds. */
    now?: () => number
  }) {
    this.#keys = parts.keys
    this.#recent = parts.recent
    this.#sink = parts.sink
    this.#metrics = parts.metrics
    this.#rates = parts.rates
    this.#suppressions = parts.suppressions
    this.#now = parts.now ?? Date.now
  }

  /**
   * What can be said before the body is read: the source that the head names, or why the request is refused. Null
   * where only the body can say whose it is; a Bearer token that is no write key may be one for something else.
   */
  admit(
    { basicKey, bearerKey, queryKey }: HeadKeys,
    route: CallRoute,
    sender: string,
  ): Admission | Promise<Admission> {
    const source = this.#keys.find(basicKey, bearerKey, queryKey)
    if (source !== undefined) return this.#limited(source, route, sender, 1) ?? source
    if (basicKey === null && queryKey === null) return null
    return this.#sourceLater([basicKey, bearerKey, queryKey])
  }

  /** The source of a write key, for what SDKs ask before they send. 'unknown' while that cannot be told. */
  sourceOf(key: string): Source | Promise<Source | 'none' | 'unknown'> {
    return this.#keys.find(key) ?? this.#keys.findLater([key])
  }

  /** Counts a request whose body was refused; `source` is what `admit` returned. */
  bodyRefused(source: Source | null, { type }: CallRoute, { code }: CollectAnswer): void {
    const result = code === overloaded.code ? 'overloaded' : 'rejected'
    this.#metrics.calls(source?.id ?? unknownSource, type, result, 1, code)
  }

  // No function that looks at what was found in a body waits for anything: it would keep that meanwhile, which may be
  // a hundred times as much as the body.
  collect(given: CollectRequest): CollectAnswer | Promise<CollectAnswer> {
    const receivedAt = this.#now()
    const { text, route, keys, sender } = given
    const { basicKey, bearerKey, queryKey } = keys
    const ofHead = this.#keys.find(basicKey)
    // Much may have come in since it was admitted: not all of it needs to be read.
    const limited = ofHead && this.#limited(ofHead, route, sender, 1)
    if (limited) return limited
    const read = readTrackingRequest(text, route.isBatch)
    const source = ofHead ?? this.#keys.find(read.writeKey, bearerKey, queryKey)
    if (source !== undefined) return this.#collectFrom(source, given, read, receivedAt)
    const all = [basicKey, read.writeKey, bearerKey, queryKey]
    if (all.every((key) => key === null)) return this.#ofNobody(read.fault ? notReadable : writeKeyMissing)
    return this.#collectLater(all, given, receivedAt)
  }

  async #collectLater(
    keys: readonly (string | null)[],
    given: CollectRequest,
    receivedAt: number,
  ): Promise<CollectAnswer> {
    const source = await this.#sourceLater(keys)
    if ('status' in source) return source
    return this.#collectFrom(source, given, readTrackingRequest(given.text, given.route.isBatch), receivedAt)
  }

  #collectFrom(
    source: Source,
    given: CollectRequest,
    read: ReadRequest,
    receivedAt: number,
  ): CollectAnswer | Promise<CollectAnswer> {
    const { route, sender } = given
    if (!source.enabled) {
      const answer = sourceDisabled(source.id)
      this.#rejected(source, route.type, 1, answer.code)
      return answer
    }
    if (read.fault) {
      this.#rejected(source, route.type, 1, read.fault.code)
      return faulty(read.fault)
    }
    const { count } = read.request.calls
    if (count === 0) return success
    return this.#limited(source, route, sender, count) ?? this.#write(given, read.request, source, receivedAt)
  }

  /** The source of keys of which none is known yet, or what to answer without one. */
  async #sourceLater(keys: readonly (string | null)[]): Promise<Source | CollectAnswer> {
    const found = await this.#keys.findLater(keys)
    if (found === 'unknown') return unavailable
    if (found !== 'none') return found
    return this.#ofNobody(writeKeyUnknown)
  }

  #ofNobody(answer: CollectAnswer): CollectAnswer {
    this.#metrics.calls(unknownSource, null, 'rejected', 1, answer.code)
    return answer
  }

  /** The refusal of a source that exceeds its quota, or what any may send; null for one that does not. */
  #limited(source: Source, { type }: CallRoute, sender: string, calls: number): CollectAnswer | null {
    const excess = this.#rates.excess(source, sender)
    if (excess === null) return null
    const isQuota = excess.by === 'quota'
    this.#metrics.calls(source.id, type, isQuota ? 'over_quota' : 'limited', calls)
    return isQuota
      ? overQuota(source.id, source.maxRate!, excess.waitMs)
      : rateLimited(source.id, excess.waitMs)
  }

  #write(
    { route, ip, sender, userAgent, traceparent, reservation }: CollectRequest,
    { calls, sentAt, hasExactTimestamps, context, integrations }: TrackingRequest,
    source: Source,
    receivedAt: number,
  ): CollectAnswer | Promise<CollectAnswer> {
    const { count } = calls
    if (this.#sink.problem() !== null) return this.#refused(source, route.type, 'unavailable', count)
    // Each call gets a copy of what the batch says for all of them.
    const copied = ((context?.text.length ?? 0) + (integrations?.text.length ?? 0)) * count
    if (!reservation.moveTo(source.id) || !reservation.hasCalls(count) || !reservation.takeBytes(copied))
      return this.#refused(source, route.type, 'overloaded', count)
    let isOwnId = true
    const rules: RequestRules = {
      sourceId: source.id,
      receivedAt,
      newMessageId: () => {
        isOwnId = false
        return randomUUID()
      },
      type: route.type,
      sentAt,
      correctsClock: route.correctsClock,
      hasExactTimestamps,
      context,
      integrations,
      ip: route.isClientSide && ip !== '' ? sharedMap(`{"ip":${JSON.stringify(ip)}}`) : null,
    }
    const rejected: RejectedCall[] = []
    let rejectedCount = 0
    /** Of rejected calls, by code; nearly always there are none. */
    let codes: Map<string, number> | null = null
    let added = 0
    let repeated = 0
    let ofBots = 0
    const pending = new PendingCalls(source.id)
    const recent = this.#recent
    const scope = recent.scopeOf(source.id)
    const suppressions = this.#suppressions.isEmpty ? null : this.#suppressions
    const hygiene = hygieneOf(source, route.isClientSide, userAgent)
    for (let index = 0; index < count; index++) {
      isOwnId = true
      const { call, fault } = readScanned(calls, index, rules)
      if (fault) {
        rejectedCount++
        codes ??= new Map()
        codes.set(fault.code, (codes.get(fault.code) ?? 0) + 1)
        if (rejected.length < maxNamed) rejected.push({ index, ...fault })
        continue
      }
      const { type } = call as { type: CallType }
      let isBot = false
      if (hygiene !== null) {
        isBot = hygiene.isBot(call.context)
        if (isBot && hygiene.dropsBots) {
          ofBots++
          this.#metrics.calls(source.id, type, 'bot', 1)
          continue
        }
        call.context = hygiene.cleaned(call.context, isBot)
      }
      if (suppressions?.covers({ sourceId: source.id, type, userIds: usersOf(call) })) {
        this.#metrics.calls(source.id, type, 'suppressed', 1)
        continue
      }
      // A messageId that was made here cannot be sent again.
      const hash = isOwnId ? recent.hashOf(scope, call.messageId) : null
      const seen = hash === null ? null : recent.seen(scope, call.messageId, hash)
      if (seen !== null) repeated++
      if (seen === 'written') {
        this.#metrics.calls(source.id, type, 'duplicate', 1)
        continue
      }
      const part = seen ?? this.#sink.add(call, traceparent)
      if (seen === null) added++
      if (seen === null && hash !== null) recent.begin(scope, call.messageId, hash, part)
      pending.add({ type, part, isDuplicate: seen !== null, isFlagged: isBot })
    }
    reservation.addCalls(added)
    // A bot uses up none of what its source may send.
    const notTaken = rejectedCount + repeated + ofBots
    // Those of suppressed users count as taken: who is suppressed must not show in how much a source may send.
    this.#rates.count(source, count - notTaken, sender, notTaken)
    if (codes) for (const [code, its] of codes) this.#rejected(source, route.type, its, code)
    const taken =
      route.isBatch || rejectedCount === 0 ? successBut(rejected, rejectedCount) : faulty(rejected[0]!)
    return this.#whenWritten(pending, source, taken)
  }

  async #whenWritten(pending: PendingCalls, source: Source, taken: CollectAnswer): Promise<CollectAnswer> {
    const { added, repeated } = await pending.end(this.#metrics)
    if (added + repeated === 0) return taken
    // They come again, and count then.
    this.#rates.giveBack(source, added)
    return unavailable
  }

  #rejected(source: Source, type: CallType | null, count: number, code?: string): void {
    this.#metrics.calls(source.id, type, 'rejected', count, code)
  }

  #refused(
    source: Source,
    type: CallType | null,
    result: 'unavailable' | 'overloaded',
    count: number,
  ): CollectAnswer {
    this.#metrics.calls(source.id, type, result, count)
    return result === 'unavailable' ? unavailable : overloaded
  }
}

function readScanned({ text, spans, found }: ScannedCalls, index: number, rules: RequestRules): TrackingCall {
  if (found[index] === isTooLarge) return { call: null, fault: tooLarge }
  if (found[index] === isNoObject) return { call: null, fault: noObject }
  return readRequestCall(text, spans, index * spansPerCall, rules)
}

const tooLarge: CallFault = {
  code: 'message_too_large',
  message: `the call has more than ${maxCallBytes} bytes`,
}
const noObject: CallFault = { code: 'invalid_json', message: 'not a JSON object' }

/** The write keys of a request's head; null where it has none. */
export interface HeadKeys {
  basicKey: string | null
  bearerKey: string | null
  queryKey: string | null
}

/** A request of the tracking API, taken apart as far as HTTP goes. */
export interface CollectRequest {
  keys: HeadKeys
  route: CallRoute
  /** The body. */
  text: string
  /** The caller's address; '' when it could not be told. */
  ip: string
  /** Who sent it, as far as shares and limits go: all addresses of one IPv6 network are one sender. */
  sender: string
  /** The header; '' where there is none. */
  userAgent: string
  /** The trace that the request came with, valid; null where it has none. */
  traceparent: string | null
  /** What this request takes of the collector's budget; released by the caller, once there is an answer. */
  reservation: Reservation
}

/** The suppressed users, live. */
export interface SuppressionView {
  /** No user is suppressed. */
  readonly isEmpty: boolean
  covers(call: SuppressibleCall): boolean
}
