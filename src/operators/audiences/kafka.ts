import { randomBytes } from 'node:crypto'
import type { Kafka } from 'kafkajs'
import type { IgnoredCounts } from '../../adapters/folded-log/ignored-records.ts'
import { GroupLease } from '../../adapters/kafka/group/lease.ts'
import type { ProducerLog } from '../../adapters/kafka/producer/partition-write.ts'
import { KafkaProducer } from '../../adapters/kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../../adapters/kafka/producer/plain-record.ts'
import {
  acknowledgeWithinMs,
  publishAll,
  type PublishedBatch,
} from '../../adapters/kafka/producer/publish.ts'
import { CallWriter } from '../../adapters/kafka/write/call-writer.ts'
import { orUnavailable } from '../../adapters/kafka/write/or-unavailable.ts'
import type { Context } from '../../cli/context.ts'
import type { Config } from '../../config/config.ts'
import type { ComputationKind } from '../../core/audience/computations.ts'
import { membershipKey, type Membership, type PlacedMembership } from '../../core/audience/membership.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { computationWords } from '../../core/settings/computation-rules.ts'
import type { EncodedRecord } from '../../forwarder/settle/record-publisher.ts'
import { MembershipView } from './store.ts'
import {
  type MembershipSink,
  type ComputationActions,
  computationIn,
  deleteComputation,
  syncComputation,
  type SettingsOfSyncs,
  type SyncPorts,
} from './sync.ts'

type Unplaced = Omit<PlacedMembership, 'partition' | 'offset' | 'timestamp'>

export interface MembershipWriterOptions {
  kafka: Kafka
  topics: { memberships: string; calls: string }
  codecs: {
    memberships: { encode(record: Membership): Buffer }
    calls: { encode(call: AnalyticsCall): Buffer }
  }
  log: ProducerLog
  /** Asked before each write, also before one that is tried again: another process may have taken over. */
  mayWrite: () => boolean
  /** Called with memberships once they are acknowledged, if the broker says where they are. */
  onWritten: (records: PlacedMembership[]) => void
}

/** Writes memberships and calls, acks=all. Memberships are acknowledged when their write resolves. */
export class MembershipWriter implements MembershipSink {
  readonly #options: MembershipWriterOptions
  readonly #producer: KafkaProducer
  readonly #calls: CallWriter

  constructor(options: MembershipWriterOptions) {
    const { kafka, topics, codecs, log, mayWrite } = options
    this.#options = options
    this.#producer = new KafkaProducer(kafka, log)
    this.#calls = new CallWriter(kafka, topics.calls, codecs.calls, log, { mayWrite })
  }

  async connect(): Promise<void> {
    const deadline = performance.now() + acknowledgeWithinMs
    const { memberships } = this.#options.topics
    await orGoOn(Promise.all([this.#producer.ready(memberships, { deadline }), this.#calls.connect()]))
  }

  async writeMemberships(records: readonly Unplaced[]): Promise<void> {
    const { codecs, topics, onWritten, mayWrite } = this.#options
    const encoded = records.map(({ audienceId, userId, membership }) =>
      encodeRecord({
        key: membershipKey(audienceId, userId),
        value: membership && codecs.memberships.encode(membership),
      }),
    )
    const written = await orGoOn(publishAll(this.#producer, topics.memberships, encoded, { mayWrite }))
    const placed = placedBy(written, encoded, records)
    if (placed !== null) onWritten(placed)
  }

  async writeCalls(calls: readonly AnalyticsCall[]): Promise<void> {
    for (const call of calls)
      if ((await orGoOn(this.#calls.add(call))) === 'too_large')
        throw new Error(`the call for a membership of ${call.messageId} is too large for Kafka`)
  }

  flushCalls(): Promise<void> {
    return orGoOn(this.#calls.flush())
  }

  close(): void {
    this.#producer.close()
    this.#calls.close()
  }
}

/** Null when a broker does not say where records are. */
function placedBy(
  written: readonly PublishedBatch[],
  encoded: readonly EncodedRecord[],
  records: readonly Unplaced[],
): PlacedMembership[] | null {
  const indexOf = new Map(encoded.map((record, index) => [record, index]))
  const placed = new Array<PlacedMembership>(records.length)
  for (const { partition, baseOffset, appendTime, records: appended } of written) {
    // Without times of the broker the view could not tell one topic from another of its name.
    if (baseOffset < 0 || appendTime < 0) return null
    for (const [behind, record] of appended.entries()) {
      const index = indexOf.get(record)!
      placed[index] = { ...records[index]!, partition, offset: baseOffset + behind, timestamp: appendTime }
    }
  }
  return placed
}

const orGoOn = <T>(work: Promise<T>): Promise<T> =>
  orUnavailable(work, '. The next sync goes on where this one stopped')

export interface OpenComputations extends ComputationActions {
  /** Only when nothing is in flight any more. */
  close(): void
}

/** The consumer group whose leader may sync this audience or trait. Deployments that share a GROUP_ID are apart. */
const syncGroup = ({ groupId, topicPrefix }: Config, id: string): string =>
  `${groupId}.sync.${topicPrefix}${id}`

/** Rejects with `setup`, `kafka_unavailable`, `registry_unavailable`, and `local` for the store's file. */
export async function openComputations(
  {
    settings,
    logCounts,
    config,
    kafka,
    log,
    topics,
    codecs,
  }: Context & {
    settings: SettingsOfSyncs
    /** Of the memberships' records. */
    logCounts?: IgnoredCounts | undefined
  },
  signal?: AbortSignal,
): Promise<OpenComputations> {
  const { groupId, sessionTimeoutMs } = config
  await Promise.all([codecs.memberships.ready(), codecs.calls.ready()])
  const view = await MembershipView.open({
    kafka,
    topic: topics.memberships,
    groupId,
    folder: config.storePath,
    codec: codecs.memberships,
    log,
    ...(logCounts && { counts: logCounts }),
  })
  // A writer for each: what fails of one sync is no other's.
  const writing = async <T>(kind: ComputationKind, work: (ports: SyncPorts) => Promise<T>): Promise<T> => {
    const onWritten = (records: PlacedMembership[]) => view.takeWritten(records)
    let lease: GroupLease | null = null
    const mayWrite = () => lease?.isHeld === true
    const writer = new MembershipWriter({ kafka, topics, codecs, log, mayWrite, onWritten })
    let connected: Promise<void> | null = null
    try {
      return await work({
        settings,
        store: {
          catchUp: () => view.catchUp(signal),
          count: (id) => view.count(id),
          openList: () => view.openList(),
          writtenBy: (id, syncId) => view.writtenBy(id, syncId),
          users: (id) => view.users(id),
        },
        sink: writer,
        async acquire(id) {
          await (connected ??= writer.connect())
          lease = await GroupLease.acquire({
            kafka,
            groupId: syncGroup(config, id),
            topic: topics.settings,
            sessionTimeoutMs,
            what: `${computationWords[kind]} "${id}"`,
          })
          return lease
        },
        newSyncId: () => randomBytes(9).toString('base64url'),
        now: Date.now,
      })
    } finally {
      writer.close()
    }
  }
  return {
    sync: (kind, id, mode, list, options) =>
      writing(kind, (ports) => syncComputation({ kind, id, mode }, list, ports, options)),
    remove: (kind, id, notify, options) =>
      writing(kind, (ports) => deleteComputation({ kind, id, notify }, ports, options)),
    async count(kind, id) {
      computationIn(settings, kind, id)
      await view.catchUp(signal)
      return view.count(id)
    },
    close: () => view.close(),
  }
}
