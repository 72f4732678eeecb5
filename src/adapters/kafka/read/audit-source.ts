import kafkajs from 'kafkajs'
import type { Admin, Kafka } from 'kafkajs'
import type {
  AuditSnapshot,
  AuditSource,
  Located,
  AuditReadOptions,
} from '../../../console/audit/audit-source.ts'
import type { AuditedPartition, PartitionId } from '../../../core/ledger/audit-report.ts'
import { partPermissions } from '../../../core/permissions.ts'
import { tierOfTopic, type TopicNames } from '../../../core/topics.ts'
import { PostriderError } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import type { Codecs } from '../../schema-registry/codecs.ts'
import { withAdmin } from '../admin/with-admin.ts'
import { missingTopics } from '../explain-kafka-error.ts'
import { readBetween } from './read-range.ts'
import { fetchRange, type OffsetRange } from './topic-offsets.ts'
import type { TopicRecord } from './topic-record.ts'

export interface AuditSourceOptions {
  kafka: Kafka
  topics: TopicNames
  /** Of the forwarders; that of the tiers is named after it. */
  groupId: string
  codecs: Codecs
  log: Logger
}

/** Retention removes whole files, and looks for them every few minutes: what is so much younger is there for sure. */
const retentionMarginMs = 600_000

type Ranges = ReadonlyMap<string, OffsetRange[]>

/** Opens a view of what lies in Kafka. Throws `setup` where topics are missing. */
export function openAuditSource(options: AuditSourceOptions): AuditSource {
  const { kafka, topics, groupId, codecs, log } = options
  let ends: Ranges = new Map()
  let tiers: string[] = []

  const read = async (
    topic: string,
    starts: ReadonlyMap<number, number> | null,
    given: { ranges?: readonly OffsetRange[]; since: number | null; signal?: AbortSignal | undefined },
    onRecord: (record: TopicRecord) => void | Promise<void>,
    passed: (offsets: number) => void,
  ): Promise<void> => {
    const ranges = given.ranges ?? (await lowered(kafka, topic, ends.get(topic)!, given.since, starts))
    const next = new Map(ranges.map(({ partition, low }) => [partition, low]))
    await readBetween(ranges, {
      kafka,
      topic,
      groupPrefix: `${groupId}.audit`,
      log,
      signal: given.signal,
      onRecord: (record) => {
        passed(record.offset + 1 - next.get(record.partition)!)
        next.set(record.partition, record.offset + 1)
        return onRecord(record)
      },
    })
    given.signal?.throwIfAborted()
  }

  const readAll = async <T>(
    names: readonly string[],
    starts: readonly (PartitionId & { from: number })[],
    { since, signal, progress }: AuditReadOptions,
    decode: (value: Buffer | null) => Promise<T> | T,
    each: (record: Located<T>, at: number) => void,
  ): Promise<void> => {
    const total = names.reduce((sum, name) => sum + offsetsOf(ends.get(name)!), 0)
    let done = 0
    for (const topic of names) {
      const its = new Map(
        starts.filter((start) => start.topic === topic).map(({ partition, from }) => [partition, from]),
      )
      await read(
        topic,
        its,
        { since, signal },
        async ({ partition, offset, value, timestamp }) => {
          each({ topic, partition, offset, value: await readable(() => decode(value)) }, timestamp)
        },
        (offsets) => progress((done += offsets), total),
      )
    }
    progress(total, total)
  }

  return {
    async snapshot(): Promise<AuditSnapshot> {
      const look = async (admin: Admin): Promise<AuditSnapshot> => {
        const all = await admin.listTopics()
        tiers = all.filter((topic) => tierOfTopic(topics, topic) !== null)
        const missing = [topics.calls, topics.deliveries, topics.deadLetters].filter(
          (topic) => !all.includes(topic),
        )
        if (missing.length > 0) throw await missingTopics(kafka, missing)
        // Before the ends: whatever these commits cover lies before them.
        const committed = [
          ...(await committedOf(admin, `${groupId}.retries`, tiers)),
          ...(await committedOf(admin, groupId, [topics.calls])),
        ]
        const names = [topics.calls, topics.deliveries, topics.deadLetters, ...tiers]
        ends = new Map(
          await Promise.all(names.map(async (name) => [name, await fetchRange(kafka, name)] as const)),
        )
        const kept = await retentionOf(admin, [topics.deadLetters, ...tiers])
        const now = Date.now()
        return {
          partitions: committed.map((one) => ({ ...one, low: lowOf(ends, one) })),
          isTier: (topic) => tiers.includes(topic),
          deadLettersKeptSince: now - kept.get(topics.deadLetters)! + retentionMarginMs,
          retriesKeptSince: now - Math.min(...tiers.map((tier) => kept.get(tier)!)) + retentionMarginMs,
        }
      }
      return withAdmin(kafka, look, { needs: partPermissions('console', { topics, tiers: [], groupId }) })
    },

    tallies: (reading, each) =>
      readAll(
        [topics.deliveries],
        [],
        reading,
        (value) => codecs.deliveries.decode(value),
        ({ value }) => {
          if (!value?.tally || value.topic === null || value.partition === null) return
          each({ topic: value.topic, partition: value.partition }, value.tally, value.at)
        },
      ),

    async calls(ranges, { signal, progress }, each) {
      const held = ends.get(topics.calls)!
      const bounds = ranges.map(({ partition, low, high }) => {
        const has = held.find((range) => range.partition === partition)
        return { partition, low: Math.max(low, has?.low ?? 0), high: Math.min(high, has?.high ?? 0) }
      })
      const total = offsetsOf(bounds)
      let done = 0
      await read(
        topics.calls,
        null,
        { ranges: bounds, since: null, signal },
        ({ partition, offset }) => each({ topic: topics.calls, partition }, offset),
        (offsets) => progress((done += offsets), total),
      )
      progress(total, total)
    },

    retries: (starts, reading, each) =>
      readAll(tiers, starts, reading, (value) => codecs.retries(anyTier(topics, tiers)).decode(value), each),

    deadLetters: (reading, each) =>
      readAll([topics.deadLetters], [], reading, (value) => codecs.deadLetters.decode(value), each),
  }
}

/** All tiers share one schema. */
const anyTier = (topics: TopicNames, tiers: readonly string[]): string => tierOfTopic(topics, tiers[0]!)!.name

/** Null for what cannot be read for good. */
async function readable<T>(decode: () => Promise<T> | T): Promise<T | null> {
  try {
    return await decode()
  } catch (error) {
    if (error instanceof PostriderError && error.code === 'undecodable') return null
    throw error
  }
}

/** With `since` and `starts`, whichever begins first. */
async function lowered(
  kafka: Kafka,
  topic: string,
  ends: readonly OffsetRange[],
  since: number | null,
  starts: ReadonlyMap<number, number> | null,
): Promise<OffsetRange[]> {
  if (since === null) return [...ends]
  const late = await fetchRange(kafka, topic, Math.max(0, since))
  return ends.map(({ partition, low, high }) => {
    const found = late.find((range) => range.partition === partition)?.low ?? low
    const begin = Math.min(found, starts?.get(partition) ?? found)
    return { partition, low: Math.max(low, begin), high }
  })
}

const offsetsOf = (ranges: readonly OffsetRange[]): number =>
  ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)

const lowOf = (ends: Ranges, { topic, partition }: PartitionId): number =>
  ends.get(topic)?.find((range) => range.partition === partition)?.low ?? 0

async function committedOf(
  admin: Admin,
  groupId: string,
  topics: string[],
): Promise<Omit<AuditedPartition, 'low'>[]> {
  if (topics.length === 0) return []
  const found = await admin.fetchOffsets({ groupId, topics })
  return found.flatMap(({ topic, partitions }) =>
    partitions.map(({ partition, offset, metadata }) => ({
      group: groupId,
      topic,
      partition,
      position: Number(offset) < 0 ? null : Number(offset),
      metadata: metadata ?? null,
    })),
  )
}

/** How long each topic keeps records, in ms. */
async function retentionOf(admin: Admin, names: readonly string[]): Promise<Map<string, number>> {
  const { resources } = await admin.describeConfigs({
    resources: names.map((name) => ({
      type: kafkajs.ConfigResourceTypes.TOPIC,
      name,
      configNames: ['retention.ms'],
    })),
    includeSynonyms: false,
  })
  return new Map(
    resources.map(({ resourceName, configEntries }) => {
      const value = Number(
        configEntries.find(({ configName }) => configName === 'retention.ms')?.configValue ?? -1,
      )
      return [resourceName, value < 0 ? Infinity : value]
    }),
  )
}
