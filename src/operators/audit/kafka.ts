import kafkajs, { type Admin, type Kafka } from 'kafkajs'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { forwardersCommits } from '../../adapters/kafka/group/committed-offsets.ts'
import { readBetween } from '../../adapters/kafka/read/read-range.ts'
import {
  fetchRange,
  fetchRanges,
  type OffsetRange,
  type TopicRange,
} from '../../adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import type { Logger } from '../../adapters/log.ts'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import { isReport } from '../../adapters/schema-registry/ledger-records.ts'
import { readable } from '../../adapters/schema-registry/readable.ts'
import { SqliteKeySet } from '../audiences/staged-list.ts'
import type { Context } from '../../cli/context.ts'
import type { Mails } from '../operational-events/events.ts'
import { sendEvent } from '../operational-events/open.ts'
import type { PartitionId } from '../../core/ledger/audit-report.ts'
import { partPermissions } from '../../core/permissions.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { tierOfTopic, type TopicNames } from '../../core/topics.ts'
import type { AuditSnapshot, AuditSource, Located, AuditReadOptions } from './audit.ts'
import { AuditRuns, type AuditStore } from './runs.ts'

type PartitionStart = PartitionId & { from: number }

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

/** Opens a view of what lies in Kafka. Throws `setup` where topics are missing. */
export function openAuditSource(options: AuditSourceOptions): AuditSource {
  const { kafka, topics, groupId, codecs, log } = options
  /** By topic, what each partition held at the snapshot. */
  let held: ReadonlyMap<string, readonly OffsetRange[]> = new Map()
  let tiers: string[] = []

  /** @param passed called with the number of offsets that each record brings the reading on */
  const read = async (
    topic: string,
    ranges: readonly OffsetRange[],
    signal: AbortSignal | undefined,
    passed: (offsets: number) => void,
    onRecord: (record: TopicRecord) => void | Promise<void>,
  ): Promise<void> => {
    const next = new Map(ranges.map(({ partition, low }) => [partition, low]))
    await readBetween(ranges, {
      kafka,
      topic,
      log,
      signal,
      onRecord: (record) => {
        passed(record.offset + 1 - next.get(record.partition)!)
        next.set(record.partition, record.offset + 1)
        return onRecord(record)
      },
    })
    signal?.throwIfAborted()
  }

  const readAll = async <T>(
    names: readonly string[],
    starts: readonly PartitionStart[],
    { since, signal, progress }: AuditReadOptions,
    decode: (value: Buffer | null) => Promise<T> | T,
    each: (record: Located<T>, at: number) => void,
  ): Promise<void> => {
    const total = names.reduce((sum, name) => sum + offsetsOf(held.get(name)!), 0)
    let done = 0
    const passed = (offsets: number) => progress((done += offsets), total)
    for (const topic of names) {
      const ranges = await lowered(kafka, topic, held.get(topic)!, since, starts)
      await read(topic, ranges, signal, passed, async ({ partition, offset, value, timestamp }) => {
        each({ topic, partition, offset, value: await readable(() => decode(value)) }, timestamp)
      })
    }
    progress(total, total)
  }

  return {
    async snapshot(): Promise<AuditSnapshot> {
      const look = async (admin: Admin): Promise<AuditSnapshot> => {
        // Before the ends: whatever these commits cover lies before them.
        const found = await forwardersCommits(kafka, admin, groupId, topics)
        tiers = found.tiers
        const names = [topics.calls, topics.deliveries, topics.deadLetters, ...tiers]
        const ranges = await fetchRanges(kafka, names)
        held = Map.groupBy(ranges, ({ topic }) => topic)
        const kept = await retentionOf(admin, [topics.deadLetters, ...tiers])
        const now = Date.now()
        return {
          partitions: found.commits.map((commit) => ({ ...commit, low: lowOf(ranges, commit) })),
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
        (value) => (isReport(value) ? null : codecs.deliveries.decode(value)),
        ({ value }) => {
          if (!value?.tally || value.topic === null || value.partition === null) return
          each({ topic: value.topic, partition: value.partition }, value.tally, value.at)
        },
      ),

    async calls(ranges, { signal, progress }, each) {
      const bounds = ranges.map(({ partition, low, high }) => {
        const has = held.get(topics.calls)!.find((range) => range.partition === partition)
        return { partition, low: Math.max(low, has?.low ?? 0), high: Math.min(high, has?.high ?? 0) }
      })
      const total = offsetsOf(bounds)
      let done = 0
      const passed = (offsets: number) => progress((done += offsets), total)
      await read(topics.calls, bounds, signal, passed, ({ partition, offset }) =>
        each({ topic: topics.calls, partition }, offset),
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

/** With `since` and `starts`, whichever begins first. */
async function lowered(
  kafka: Kafka,
  topic: string,
  held: readonly OffsetRange[],
  since: number | null,
  starts: readonly PartitionStart[],
): Promise<readonly OffsetRange[]> {
  if (since === null) return held
  const late = await fetchRange(kafka, topic, Math.max(0, since))
  return held.map(({ partition, low, high }) => {
    const found = late.find((range) => range.partition === partition)?.low ?? low
    const start = starts.find((each) => each.topic === topic && each.partition === partition)
    const begin = Math.min(found, start?.from ?? found)
    return { partition, low: Math.max(low, begin), high }
  })
}

const offsetsOf = (ranges: readonly OffsetRange[]): number =>
  ranges.reduce((sum, { low, high }) => sum + Math.max(0, high - low), 0)

const lowOf = (ranges: readonly TopicRange[], { topic, partition }: PartitionId): number =>
  ranges.find((range) => range.topic === topic && range.partition === partition)?.low ?? 0

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

/** Audits for the API. */
export const openAudits = (
  deployment: Context,
  store: AuditStore,
  settings: { state: Pick<SettingsState, 'sources' | 'destinations'> },
  mails: Pick<Mails, 'add'> | null,
): AuditRuns =>
  new AuditRuns({
    source: () => openAuditSource({ ...deployment, groupId: deployment.config.groupId }),
    newKeySet: () => new SqliteKeySet(),
    store,
    sendEvent: (event) => sendEvent(deployment, settings.state, mails, event),
    log: deployment.log,
    now: Date.now,
  })
