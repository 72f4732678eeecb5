import type { Admin } from 'kafkajs'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { CommittedOffsets, forwardersCommits } from '../../adapters/kafka/group/committed-offsets.ts'
import { readBetween, readPlaces } from '../../adapters/kafka/read/read-range.ts'
import { fetchRanges, type TopicRange } from '../../adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import { readable } from '../../adapters/schema-registry/readable.ts'
import type { Context } from '../../cli/context.ts'
import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import {
  countOf,
  isRun,
  offsetsOf,
  type DeferredRun,
  type TierRecord,
} from '../../core/delivery/deferred-run.ts'
import { erasableDelivery } from '../../core/erasure/erasable.ts'
import type { ErasableCall, ErasureIndex } from '../../core/erasure/erasures.ts'
import { placeKey, type Place } from '../../core/ledger/trace.ts'
import { partPermissions } from '../../core/permissions.ts'
import { replayTier, tierOfTopic } from '../../core/topics.ts'
import { messageOf } from '../../errors.ts'
import {
  maxWaitingRead,
  WaitingInTiers,
  type WaitingCall,
  type WaitingCalls,
  type WaitingCounts,
} from './waiting.ts'

/** Deliveries in retry tiers that no forwarder has finished, by destination: counted where they lie. */
export function openWaiting(
  { config, kafka, log, topics, codecs }: Context,
  erased: (stop?: AbortSignal) => Promise<Pick<ErasureIndex, 'covers'>>,
): WaitingInTiers {
  const { groupId } = config
  const replays = topics.retry(replayTier.name)
  const codec = codecs.retries(replayTier.name)
  const needs = partPermissions('console', { topics, tiers: [], groupId })
  const committed = async () => {
    const look = (admin: Admin) => forwardersCommits(kafka, admin, groupId, topics)
    const { tiers, commits } = await withAdmin(kafka, look, { needs })
    const finished = new CommittedOffsets(commits)
    return { waited: tiers.filter((topic) => topic !== replays), commits, finished }
  }
  const unfinished = async () => {
    const { waited, commits, finished } = await committed()
    const positions = new Map(commits.map((each) => [`${each.topic}/${each.partition}`, each.position ?? 0]))
    const ranges = (await fetchRanges(kafka, waited)).map((range) => ({
      ...range,
      low: Math.max(range.low, positions.get(`${range.topic}/${range.partition}`) ?? 0),
    }))
    const records = ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
    return { ranges, finished, isTooMuch: records > maxWaitingRead }
  }
  const waitingOf = (record: TierRecord, { topic, key, timestamp }: TopicRecord): Waiting => {
    const dueAt = record.scheduledAt + tierOfTopic(topics, topic)!.delayMs
    if (isRun(record)) return { topic, dueAt, attempts: 0, own: null, owner: null, run: record }
    const { messageId, type, attempts, notBefore } = record
    return {
      ...{ topic, dueAt: Math.max(dueAt, notBefore ?? 0), attempts, run: null },
      own: { messageId, type },
      owner: erasableDelivery(record, key?.toString() ?? null, timestamp),
    }
  }
  const each = async (
    ranges: readonly TopicRange[],
    isWanted: (place: Place) => boolean,
    take: (record: TierRecord, from: TopicRecord) => void,
    signal?: AbortSignal,
  ) => {
    for (const [topic, its] of Map.groupBy(ranges, (range) => range.topic))
      await readBetween(its, {
        ...{ kafka, topic, log, signal },
        onRecord: async (from) => {
          if (!isWanted(from)) return
          const record = await readable(() => codec.decode(from.value))
          if (record !== null) take(record, from)
        },
      })
  }
  const count = async (): Promise<WaitingCounts | null> => {
    const found = await unfinished()
    if (found.isTooMuch) return null
    const counts = new Map<string, number>()
    const { ranges, finished } = found
    await each(
      ranges,
      (place) => !finished.isFinished(place),
      (record) => {
        const { destinationId } = record
        counts.set(destinationId, (counts.get(destinationId) ?? 0) + (isRun(record) ? countOf(record) : 1))
      },
    )
    return counts
  }
  const list = async (destinationId: string, most: number, signal: AbortSignal): Promise<WaitingCalls> => {
    const { ranges, finished, isTooMuch } = await unfinished()
    // Of each partition what is due first lies first.
    const share = Math.ceil(maxWaitingRead / Math.max(1, ranges.length))
    const first = isTooMuch
      ? ranges.map((range) => ({ ...range, high: Math.min(range.high, range.low + share) }))
      : ranges
    const found: Waiting[] = []
    await each(
      first,
      (place) => !finished.isFinished(place),
      (record, from) => {
        if (record.destinationId === destinationId) found.push(waitingOf(record, from))
      },
      signal,
    )
    return firstOf(found, most, isTooMuch, signal)
  }
  /** What is due first of what was found, without what a deletion covers. */
  const firstOf = async (
    found: readonly Waiting[],
    most: number,
    isCut: boolean,
    signal: AbortSignal,
  ): Promise<WaitingCalls> => {
    // After the records: users erased before they were read are known then.
    const erasures = await erased(signal)
    const shown = found.filter(({ owner }) => owner === null || !erasures.covers(owner))
    const chosen: (Waiting & { place: Place | null })[] = []
    for (const waiting of shown.toSorted((a, b) => a.dueAt - b.dueAt)) {
      if (chosen.length >= most) break
      for (const place of waiting.run ? placesIn(waiting.run) : [null]) {
        if (chosen.length >= most) break
        chosen.push({ ...waiting, place })
      }
    }
    const total = shown.reduce((sum, { run }) => sum + (run ? countOf(run) : 1), 0)
    const calls = await named(chosen, signal, (owner) => erasures.covers(owner))
    return { calls, isCut: isCut || total > most }
  }
  const held = async (
    destinationId: string,
    since: number,
    most: number,
    signal: AbortSignal,
  ): Promise<WaitingCalls> => {
    const { waited, finished } = await committed()
    const delayOf = (topic: string) => tierOfTopic(topics, topic)!.delayMs
    // What came due since then was scheduled a delay before.
    const reached = await fetchRanges(kafka, waited, (topic) => since - delayOf(topic) - clockSkewMs)
    const share = Math.ceil(maxWaitingRead / Math.max(1, reached.length))
    const ranges = reached.map((range) => {
      const low = Math.max(range.low, range.since ?? range.low)
      return { ...range, low: Math.max(low, range.high - share), isCut: range.high - low > share }
    })
    /** By the delivery: one whose wait is longer than its tier's goes there several times. */
    const found = new Map<string, Waiting>()
    await each(
      ranges,
      (place) => finished.isFinished(place),
      (record, from) => {
        if (record.destinationId !== destinationId) return
        const waiting = waitingOf(record, from)
        const isHeld = waiting.dueAt >= since && waiting.dueAt <= Date.now()
        if (isHeld) found.set(isRun(record) ? placeKey(from) : record.id, waiting)
      },
      signal,
    )
    const isCut = ranges.some((range) => range.isCut)
    return firstOf([...found.values()], most, isCut, signal)
  }
  /** A run says only where its calls lie. */
  const named = async (
    chosen: readonly (Waiting & { place: Place | null })[],
    signal: AbortSignal,
    isErased: (owner: ErasableCall) => boolean,
  ): Promise<WaitingCall[]> => {
    const places = chosen.flatMap(({ place }) => place ?? [])
    const calls = new Map<string, AnalyticsCall>()
    for (const record of await readPlaces({ kafka, log }, places, signal)) {
      const call = await codecs.calls.read(record.value)
      if (!call) continue
      const { sourceId, type } = call
      const owner = { sourceId, type, userIds: usersOf(call), appendedAt: record.timestamp }
      if (!isErased(owner)) calls.set(placeKey(record), call)
    }
    return chosen.flatMap(({ dueAt, topic, attempts, own, place }): WaitingCall[] => {
      const wait = { dueAt, attempts, tier: tierOfTopic(topics, topic)!.name }
      if (own) return [{ ...own, ...wait, receivedAt: null }]
      const call = place && calls.get(placeKey(place))
      if (!call || call.type === 'unknown') return []
      const { messageId, type, receivedAt } = call
      return [{ messageId, type, receivedAt, ...wait }]
    })
  }
  return new WaitingInTiers(
    {
      list,
      held,
      count: () =>
        count().catch((error: unknown) => {
          log.debug({ error: messageOf(error) }, 'what waits in the tiers cannot be counted')
          return null
        }),
    },
    Date.now,
  )
}

/** What a record of a tier says, without its body: thousands are looked at. */
interface Waiting {
  topic: string
  dueAt: number
  attempts: number
  /** Of a delivery of its own. */
  own: Pick<WaitingCall, 'messageId' | 'type'> | null
  /** Whose that is. */
  owner: ErasableCall | null
  run: DeferredRun | null
}

/** Clocks of processes and brokers differ by less. */
const clockSkewMs = 60_000

function* placesIn({ calls }: DeferredRun): Iterable<Place> {
  const { topic, partition } = calls
  for (const offset of offsetsOf(calls)) yield { topic, partition, offset }
}
