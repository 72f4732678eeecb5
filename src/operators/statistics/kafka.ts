import type { Admin } from 'kafkajs'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { CommittedOffsets, forwardersCommits } from '../../adapters/kafka/group/committed-offsets.ts'
import { readBetween, readPlaces } from '../../adapters/kafka/read/read-range.ts'
import { fetchRanges } from '../../adapters/kafka/read/topic-offsets.ts'
import { readable } from '../../adapters/schema-registry/readable.ts'
import type { Context } from '../../cli/context.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import {
  countOf,
  isRun,
  offsetsOf,
  type DeferredRun,
  type TierRecord,
} from '../../core/delivery/deferred-run.ts'
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
export function openWaiting({ config, kafka, log, topics, codecs }: Context): WaitingInTiers {
  const { groupId } = config
  const replays = topics.retry(replayTier.name)
  const codec = codecs.retries(replayTier.name)
  const needs = partPermissions('console', { topics, tiers: [], groupId })
  const unfinished = async () => {
    const look = (admin: Admin) => forwardersCommits(kafka, admin, groupId, topics)
    const { tiers, commits } = await withAdmin(kafka, look, { needs })
    const waited = tiers.filter((topic) => topic !== replays)
    const finished = new CommittedOffsets(commits)
    const positions = new Map(commits.map((each) => [`${each.topic}/${each.partition}`, each.position ?? 0]))
    const ranges = (await fetchRanges(kafka, waited)).map((range) => ({
      ...range,
      low: Math.max(range.low, positions.get(`${range.topic}/${range.partition}`) ?? 0),
    }))
    const records = ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)
    return { ranges, finished, isTooMuch: records > maxWaitingRead }
  }
  const each = async (
    { ranges, finished }: Pick<Awaited<ReturnType<typeof unfinished>>, 'ranges' | 'finished'>,
    take: (record: TierRecord, topic: string) => void,
    signal?: AbortSignal,
  ) => {
    for (const [topic, its] of Map.groupBy(ranges, (range) => range.topic))
      await readBetween(its, {
        ...{ kafka, topic, log, signal },
        onRecord: async ({ partition, offset, value }) => {
          if (finished.isFinished({ topic, partition, offset })) return
          const record = await readable(() => codec.decode(value))
          if (record !== null) take(record, topic)
        },
      })
  }
  const count = async (): Promise<WaitingCounts | null> => {
    const found = await unfinished()
    if (found.isTooMuch) return null
    const counts = new Map<string, number>()
    await each(found, (record) => {
      const { destinationId } = record
      counts.set(destinationId, (counts.get(destinationId) ?? 0) + (isRun(record) ? countOf(record) : 1))
    })
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
      { ranges: first, finished },
      (record, topic) => {
        if (record.destinationId === destinationId)
          found.push(waitingOf(record, tierOfTopic(topics, topic)!.delayMs, topic))
      },
      signal,
    )
    const chosen: (Waiting & { place: Place | null })[] = []
    for (const waiting of found.toSorted((a, b) => a.dueAt - b.dueAt)) {
      if (chosen.length >= most) break
      for (const place of waiting.run ? placesIn(waiting.run) : [null]) {
        if (chosen.length >= most) break
        chosen.push({ ...waiting, place })
      }
    }
    const total = found.reduce((sum, { run }) => sum + (run ? countOf(run) : 1), 0)
    return { calls: await named(chosen, signal), isCut: isTooMuch || total > most }
  }
  /** A run says only where its calls lie. */
  const named = async (
    chosen: readonly (Waiting & { place: Place | null })[],
    signal: AbortSignal,
  ): Promise<WaitingCall[]> => {
    const places = chosen.flatMap(({ place }) => place ?? [])
    const calls = new Map<string, AnalyticsCall>()
    for (const { topic, partition, offset, value } of await readPlaces({ kafka, log }, places, signal)) {
      const call = await codecs.calls.read(value)
      if (call) calls.set(placeKey({ topic, partition, offset }), call)
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
  run: DeferredRun | null
}

function waitingOf(record: TierRecord, delayMs: number, topic: string): Waiting {
  const dueAt = record.scheduledAt + delayMs
  if (isRun(record)) return { topic, dueAt, attempts: 0, own: null, run: record }
  const { messageId, type, attempts, notBefore } = record
  return { topic, dueAt: Math.max(dueAt, notBefore ?? 0), attempts, own: { messageId, type }, run: null }
}

function* placesIn({ calls }: DeferredRun): Iterable<Place> {
  const { topic, partition } = calls
  for (const offset of offsetsOf(calls)) yield { topic, partition, offset }
}
