import { randomBytes, randomInt } from 'node:crypto'
import type { Admin, Kafka } from 'kafkajs'
import { eachSettings } from '../../adapters/folded-log/settings-history.ts'
import { withAdmin, LastingAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { forwardersCommits, commitsOf } from '../../adapters/kafka/group/committed-offsets.ts'
import { GroupLease } from '../../adapters/kafka/group/lease.ts'
import { Brokers } from '../../adapters/kafka/link/brokers.ts'
import type { ProducerLog } from '../../adapters/kafka/producer/partition-write.ts'
import { encodeRecord } from '../../adapters/kafka/producer/plain-record.ts'
import { readBetween, readSpans } from '../../adapters/kafka/read/read-range.ts'
import { fetchRange, topicRanges } from '../../adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import { RecordEncoder } from '../../adapters/kafka/wire/record-bundle.ts'
import { KafkaSink } from '../../adapters/kafka/write/record-sink.ts'
import type { Logger } from '../../adapters/log.ts'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import type { KeyedTierRecord } from '../../adapters/schema-registry/delivery-fields.ts'
import { ledgerType } from '../../adapters/schema-registry/ledger-records.ts'
import type { RecordCodec } from '../../adapters/schema-registry/record-codec.ts'
import type { Context } from '../../cli/context.ts'
import { checkCall } from '../../core/call/check-call.ts'
import { replayIdPrefix, type DeadLetterReason } from '../../core/delivery/delivery.ts'
import type { NotPlannedReason } from '../../core/ledger/delivery-event.ts'
import { partPermissions } from '../../core/permissions.ts'
import { noTotals, type ReplayTotals } from '../../core/replay/replay-job.ts'
import { replayTier, type TopicNames, tierOfTopic } from '../../core/topics.ts'
import type { EncodedRecord } from '../../forwarder/settle/record-publisher.ts'
import { readDeadLetter, type DeadLetterSource, deadLetterSource } from '../dead-letters/kafka.ts'
import { LedgerPasses } from './ledger.ts'
import {
  type ReplayProgress,
  type PartitionSpan,
  type ReplaySource,
  keyOfPlace,
  type ReplayedRecord,
  type ReplayTopic,
  type ReplayRig,
} from './rig.ts'

/** The order in which a commit's metadata holds them: later ones are added at the end. */
const columns: readonly (keyof ReplayTotals)[] = [
  'held',
  'skipped',
  'failed',
  'delivered',
  'looked',
  'erased',
  'refused',
  'lost',
  'raw',
  'repeated',
]

/** How far a replay is in a partition, as it is committed. */
export const commitOf = ({ topic, partition, position, totals }: ReplayProgress) => ({
  topic,
  partition,
  offset: position,
  metadata: columns.map((column) => totals[column]).join(),
})

/** Null where nothing was committed. */
export function progressOf(commit: {
  topic: string
  partition: number
  position: number | null
  metadata: string | null
}): ReplayProgress | null {
  const { topic, partition, position, metadata } = commit
  if (position === null) return null
  const totals = noTotals()
  const counts = (metadata ?? '').split(',').map(Number)
  for (const [index, column] of columns.entries()) totals[column] = counts[index] || 0
  return { topic, partition, position, totals }
}

export interface ReplaySourceOptions {
  kafka: Kafka
  topics: TopicNames
  /** Of the forwarders; that of the tiers is named after it. */
  groupId: string
  codecs: Codecs
  deadLetters: DeadLetterSource
  log: Logger
}

const suppressed = Buffer.from('suppressed' satisfies NotPlannedReason)
const blocked = Buffer.from('plan_violation' satisfies DeadLetterReason)

/** What replays look at. */
export function openReplaySource({
  kafka,
  topics,
  groupId,
  codecs,
  deadLetters,
  log,
}: ReplaySourceOptions): ReplaySource {
  const retries = codecs.retries(replayTier.name)
  const needs = partPermissions('console', { topics, tiers: [], groupId })
  return {
    spans: async (topic, since): Promise<PartitionSpan[]> =>
      (await fetchRange(kafka, topic, since)).sort((a, b) => a.partition - b.partition),

    async committed() {
      const look = (admin: Admin) => forwardersCommits(kafka, admin, groupId, topics)
      const { commits } = await withAdmin(kafka, look, { needs })
      return new Map(commits.map((commit) => [keyOfPlace(commit), commit.position ?? 0]))
    },

    read: (topic, spans, signal, onGone) =>
      readSpans(spans, {
        ...{ kafka, topic, log, signal },
        onGone: onGone && ((partition, low, high) => onGone({ partition, low, high })),
      }),
    each: (topic, spans, onRecord, signal) => readBetween(spans, { kafka, topic, log, signal, onRecord }),

    settings: (from, signal) =>
      eachSettings({ kafka, topic: topics.settings, log, codec: codecs.settings }, from, Infinity, signal),

    async call(value) {
      const call = await codecs.calls.read(value as Buffer | null)
      return call && checkCall(call).call
    },
    retry: async (value) => retries.read(value as Buffer | null),
    deadLetter: (value) => codecs.deadLetters.read(value as Buffer | null),
    storedDeadLetter: (record) => readDeadLetter(deadLetters, record as TopicRecord),
    mayName(texts) {
      const named = texts.map((text) => Buffer.from(text))
      return (value) => value !== null && hasAny(named, value as Buffer)
    },
    topics: async () => new Set(await withAdmin(kafka, (admin) => admin.listTopics(), { needs })),
    eventsOf(destinationIds) {
      const ids = destinationIds.map((id) => Buffer.from(id))
      return (value) => (mayConcern(ids, value as Buffer) ? codecs.deliveries.read(value as Buffer) : null)
    },
  }
}

/**
 * Whether a record of the ledger may say anything of these destinations, by its bytes: there are thousands a second that do
 * not, and decoding one takes ten times as long.
 */
function mayConcern(destinationIds: readonly Buffer[], value: Buffer | null): boolean {
  const type = ledgerType(value)
  if (type === 'tally' || type === 'heartbeat') return true
  // A record that is skipped as a whole names no destination.
  if (type !== 'disposition') return false
  return hasAny(destinationIds, value!) || value!.includes(suppressed) || value!.includes(blocked)
}

/** By a record's bytes: Avro writes text as UTF-8. */
const hasAny = (texts: readonly Buffer[], value: Buffer): boolean =>
  texts.some((text) => value.includes(text))

export interface ReplayTopicOptions {
  kafka: Kafka
  topics: TopicNames
  /** Of the forwarders' calls. */
  groupId: string
  /** Ready. */
  codec: RecordCodec<KeyedTierRecord>
  log: ProducerLog
}

/** Writes to the replays' topic, and back to the topics of what never became a delivery. */
export function openReplayTopic({ kafka, topics, groupId, codec, log }: ReplayTopicOptions): ReplayTopic {
  const topic = topics.retry(replayTier.name)
  const sink = new KafkaSink(kafka, topics, log, () => {})
  const encoder = new RecordEncoder(codec)
  const encode = (record: ReplayedRecord): EncodedRecord => {
    if ('topic' in record) return encodeRecord(record)
    const { key, headers } = record
    return encoder.encode(key, 'run' in record ? record.run : { ...record.delivery, key }, headers)
  }
  const admin = new LastingAdmin(kafka)
  const brokers = new Brokers(kafka)
  const lagOf = async (asked: Admin): Promise<number> => {
    const commits = await commitsOf(asked, `${groupId}.retries`, [topic])
    const ranges = await topicRanges(brokers, [topic])
    return ranges.reduce((sum, { partition, low, high }) => {
      const position = commits.find((commit) => commit.partition === partition)?.position ?? low
      return sum + Math.max(0, high - Math.max(position, low))
    }, 0)
  }
  return {
    async append(records) {
      const tooLarge: ReplayedRecord[] = []
      const byTopic = Map.groupBy(records, (record) => ('topic' in record ? record.topic : topic))
      for (const [to, its] of byTopic) {
        const encoded = new Map(its.map((record) => [encode(record), record]))
        for (const each of await sink.append(to, [...encoded.keys()])) tooLarge.push(encoded.get(each)!)
      }
      return tooLarge
    },
    lag: () => admin.use(lagOf),
    close() {
      sink.close()
      brokers.close()
      void admin.close()
    },
  }
}

/** Replays, for commands and consoles alike. Holds nothing open between calls. */
export function openReplays(
  deployment: Context,
  settings: ReplayRig['settings'],
  erasures: ReplayRig['erasures'],
): ReplayRig {
  const { config, kafka, log, topics, codecs } = deployment
  const { groupId, topicPrefix, sessionTimeoutMs } = config
  /** Its leader runs the replay, and its offsets are how far it is. Deployments that share a GROUP_ID are apart. */
  const groupOf = (id: string): string => `${groupId}.replay.${topicPrefix}${id}`
  const codec = codecs.retries(replayTier.name)
  const source = openReplaySource({
    ...{ kafka, topics, groupId, codecs, log },
    deadLetters: deadLetterSource(deployment),
  })
  return {
    settings,
    topics,
    groupId,
    source,
    ledger: new LedgerPasses(source, topics.deliveries),
    async progress(id) {
      const look = async (admin: Admin) => {
        const all = await admin.listTopics()
        const sources = [topics.calls, topics.deadLetters]
        const read = all.filter((topic) => sources.includes(topic) || tierOfTopic(topics, topic) !== null)
        return commitsOf(admin, groupOf(id), read)
      }
      const needs = partPermissions('console', { topics, tiers: [], groupId })
      const commits = await withAdmin(kafka, look, { needs })
      return commits.map(progressOf).filter((progress) => progress !== null)
    },
    async acquire(id) {
      const lease = await GroupLease.acquire({
        kafka,
        groupId: groupOf(id),
        topic: topics.calls,
        sessionTimeoutMs,
        what: `replay ${id}`,
        busy: `replay ${id}`,
      })
      return {
        check: () => lease.check(),
        release: () => lease.release(),
        commit: (progress) => lease.commit(progress.map(commitOf)),
      }
    },
    async openTopic() {
      await codec.ready()
      return openReplayTopic({ kafka, topics, groupId, codec, log })
    },
    erasures,
    newId: (at) => `${replayIdPrefix}${at.toString(36)}-${randomBytes(4).toString('hex')}`,
    random: () => randomInt(2 ** 32),
    log,
    now: Date.now,
  }
}
