import { randomUUID } from 'node:crypto'
import type { CallType } from '../core/analytics-call.ts'
import type { Source } from '../core/settings.ts'
import { readRequestCall } from '../core/tracking-call.ts'
import type { RequestRules, TrackingCall } from '../core/tracking-call.ts'
import type { CallFault } from '../core/tracking-fields.ts'
import { sharedMap } from '../core/tracking-merge.ts'
import { isNoObject, isTooLarge, mostCallBytes, readTrackingRequest } from '../core/tracking-request.ts'
import type { ScannedCalls, TrackingRequest } from '../core/tracking-request.ts'
import { spansPerCall } from '../core/tracking-scan.ts'
import { faulty, overloaded, refusal, success, successBut, unavailable } from './answers.ts'
import type { Answer, RejectedCall } from './answers.ts'
import type { CallBatch, CallSink, CollectorMetrics } from './ports.ts'
import type { RecentCalls } from './recent-calls.ts'
import type { Hold } from './room.ts'
import type { Route } from './routes.ts'
import type { WriteKeys } from './write-keys.ts'

/** A request of the tracking API, taken apart as far as HTTP goes. */
export interface CollectRequest {
  route: Route
  /** The body. */
  text: string
  /** Write keys that the request's head has; null where it has none. */
  basicKey: string | null
  bearerKey: string | null
  queryKey: string | null
  /** The caller's address; '' when it could not be told. */
  ip: string
  /** What this request takes of the collector's room; released by whoever answers. */
  hold: Hold
}

/** Sources that are not known share one label. */
const unknownSource = 'unknown'

/**
 * Turns requests into calls in Kafka. 200 says that each call that is not named in `rejected` is acknowledged by all
 * in-sync replicas; whatever could be lost is answered 429 or 503, after which the same request can be sent again.
 */
export class Collector {
  readonly #keys: WriteKeys
  readonly #recent: RecentCalls
  readonly #sink: CallSink
  readonly #metrics: CollectorMetrics
  readonly #now: () => number

  constructor(parts: {
    keys: WriteKeys
    recent: RecentCalls
    sink: CallSink
    metrics: CollectorMetrics
    /** Epoch milliseconds. */
    now?: () => number
  }) {
    this.#keys = parts.keys
    this.#recent = parts.recent
    this.#sink = parts.sink
    this.#metrics = parts.metrics
    this.#now = parts.now ?? Date.now
  }

  async collect(given: CollectRequest): Promise<Answer> {
    const receivedAt = this.#now()
    const read = readTrackingRequest(given.text, given.route.isBatch)
    // A Bearer token may be one for something else, beside a key in the body.
    const keys = [given.basicKey, read.writeKey, given.bearerKey, given.queryKey]
    const source = this.#keys.find(keys) ?? (await this.#sourceLater(keys, read.fault === null))
    if ('status' in source) return source
    if (!source.enabled) {
      this.#rejected(source, given.route.type, 1)
      return refusal(400, 'source_disabled', `source ${source.id} is disabled`)
    }
    if (read.fault) {
      this.#rejected(source, given.route.type, 1)
      return faulty(read.fault)
    }
    return this.#write(given, read.request, source, receivedAt)
  }

  /** The source of a key that is not known yet, or what to answer without one. */
  async #sourceLater(keys: readonly (string | null)[], isReadable: boolean): Promise<Source | Answer> {
    if (keys.every((key) => key === null)) {
      if (!isReadable) return refusal(400, 'invalid_json', 'the body is not one JSON object')
      return refusal(
        401,
        'write_key_missing',
        'no write key: give it by Basic auth, or as writeKey in the body',
      )
    }
    const found = await this.#keys.findLater(keys)
    if (found === 'unknown') return unavailable
    if (found !== 'none') return found
    this.#metrics.calls(unknownSource, null, 'rejected', 1)
    return refusal(401, 'write_key_unknown', 'no source has this write key')
  }

  async #write(
    { route, ip, hold }: CollectRequest,
    { calls, sentAt, hasExactTimestamps, context, integrations }: TrackingRequest,
    source: Source,
    receivedAt: number,
  ): Promise<Answer> {
    const { count } = calls
    if (count === 0) return success
    if (this.#sink.problem() !== null) return this.#refused(source, route.type, 'unavailable', count)
    if (!hold.takeCalls(count)) return this.#refused(source, route.type, 'overloaded', count)
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
    const pending = new Pending(source.id)
    const recent = this.#recent
    const scope = recent.scopeOf(source.id)
    for (let index = 0; index < count; index++) {
      isOwnId = true
      const { call, fault } = readScanned(calls, index, rules)
      if (fault) {
        this.#rejected(source, route.type, 1)
        rejected.push({ index, ...fault })
        continue
      }
      const { type } = call as { type: CallType }
      // Nobody can send an id again that was made here.
      const hash = isOwnId ? recent.hashOf(scope, call.messageId) : null
      const seen = hash === null ? null : recent.seen(scope, call.messageId, hash)
      if (seen === 'written') {
        this.#metrics.calls(source.id, type, 'duplicate', 1)
        continue
      }
      const batch = seen ?? this.#sink.add(call)
      if (seen === null && hash !== null) recent.begin(scope, call.messageId, hash, batch)
      pending.add(type, batch, seen !== null)
    }
    if (!(await pending.end(this.#metrics))) return unavailable
    return route.isBatch || rejected.length === 0 ? successBut(rejected) : faulty(rejected[0]!)
  }

  #rejected(source: Source, type: CallType | null, count: number): void {
    this.#metrics.calls(source.id, type, 'rejected', count)
  }

  #refused(
    source: Source,
    type: CallType | null,
    result: 'unavailable' | 'overloaded',
    count: number,
  ): Answer {
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
  message: `the call has more than ${mostCallBytes} bytes`,
}
const noObject: CallFault = { code: 'invalid_json', message: 'not a JSON object' }

interface WaitingCalls {
  batch: CallBatch
  type: CallType
  isDuplicate: boolean
  count: number
}

/** The calls of one request that wait for their batches: one or two batches, nearly always. */
class Pending {
  readonly #sourceId: string
  readonly #waiting: WaitingCalls[] = []

  constructor(sourceId: string) {
    this.#sourceId = sourceId
  }

  add(type: CallType, batch: CallBatch, isDuplicate: boolean): void {
    const last = this.#waiting.at(-1)
    if (last?.batch === batch && last.type === type && last.isDuplicate === isDuplicate) last.count++
    else this.#waiting.push({ batch, type, isDuplicate, count: 1 })
  }

  /** Whether all of them are written. */
  async end(metrics: CollectorMetrics): Promise<boolean> {
    let allWritten = true
    for (const { batch, type, isDuplicate, count } of this.#waiting) {
      const written = await batch.written
      if (!written) allWritten = false
      const result = !written ? 'unavailable' : isDuplicate ? 'duplicate' : 'accepted'
      metrics.calls(this.#sourceId, type, result, count)
    }
    return allWritten
  }
}
