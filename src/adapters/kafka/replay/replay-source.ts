import type { Admin, Kafka } from 'kafkajs'
import type { PartitionSpan, ReplaySource } from '../../../console/replays/replay-source.ts'
import { keyOfPlace } from '../../../console/replays/replay-source.ts'
import { checkCall } from '../../../core/call/check-call.ts'
import type { NotPlannedReason } from '../../../core/ledger/delivery-event.ts'
import { partPermissions } from '../../../core/permissions.ts'
import { replayTier, type TopicNames } from '../../../core/topics.ts'
import type { Logger } from '../../log.ts'
import type { Codecs } from '../../schema-registry/codecs.ts'
import { ledgerType } from '../../schema-registry/ledger-records.ts'
import { withAdmin } from '../admin/with-admin.ts'
import { forwardersCommits } from '../group/committed-offsets.ts'
import { readDeadLetter, type DeadLetterSource } from '../read/dead-letter-store.ts'
import { readBetween, readSpans } from '../read/read-range.ts'
import type { TopicRecord } from '../read/topic-record.ts'
import { eachSettings } from '../../folded-log/settings-history.ts'
import { fetchRange } from '../read/topic-offsets.ts'

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

    read: (topic, spans, signal) => readSpans(spans, { kafka, topic, log, signal }),
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
  // A record that is skipped as a whole names no destination. Avro writes text as UTF-8.
  if (type !== 'disposition') return false
  return destinationIds.some((id) => value!.includes(id)) || value!.includes(suppressed)
}
