import { randomBytes } from 'node:crypto'
import type { Kafka } from 'kafkajs'
import { GroupLease } from '../../adapters/kafka/lease.ts'
import { MembershipWriter } from '../../adapters/kafka/membership-writer.ts'
import type { Logger } from '../../adapters/log.ts'
import { createCodecs } from '../../adapters/schema-registry/codecs.ts'
import { MembershipView } from '../../adapters/store/membership-view.ts'
import type { Config } from '../../config.ts'
import type { GivenLot } from '../../console/computations/ports.ts'
import {
  computationIn,
  deleteComputation,
  syncComputation,
  type SyncOptions,
  type SyncPorts,
  type SyncReport,
} from '../../console/computations/sync.ts'
import type { Settings } from '../../console/ports.ts'
import type { ComputationKind } from '../../core/computations.ts'
import { computationWords } from '../../core/settings-computation-rules.ts'
import { topicNames } from '../../core/topics.ts'

/**
 * Audiences and computed traits, for commands and API alike. Several syncs can use it at once, each for another
 * audience or trait. Definitions are made by `settings.execute`.
 */
export interface OpenComputations {
  sync(
    kind: ComputationKind,
    id: string,
    mode: 'full' | 'change',
    list: AsyncIterable<GivenLot>,
    options?: SyncOptions,
  ): Promise<SyncReport>
  remove(
    kind: ComputationKind,
    id: string,
    notify: boolean,
    options?: SyncOptions,
  ): Promise<{ notified: number }>
  /** Members now, or users with a value. */
  count(kind: ComputationKind, id: string): Promise<number>
  close(): Promise<void>
}

/** The consumer group whose leader may sync this audience or trait. Deployments that share a GROUP_ID are apart. */
const syncGroup = ({ groupId, topicPrefix }: Config, id: string): string =>
  `${groupId}.sync.${topicPrefix}${id}`

/** Rejects with `setup`, `kafka_unavailable`, `registry_unavailable`, and `local` for the store's file. */
export async function openComputations(
  { config, kafka, log, settings }: { config: Config; kafka: Kafka; log: Logger; settings: Settings },
  signal?: AbortSignal,
): Promise<OpenComputations> {
  const topics = topicNames(config.topicPrefix)
  const { groupId, sessionTimeoutMs } = config
  const codecs = createCodecs({ registry: config.registry, topics, log })
  await Promise.all([codecs.memberships.ready(), codecs.calls.ready()])
  const view = await MembershipView.open({
    kafka,
    topic: topics.memberships,
    groupId,
    folder: config.storePath,
    codec: codecs.memberships,
    log,
  })
  const writer = new MembershipWriter({
    kafka,
    topics,
    codecs,
    onWritten: (records) => view.takeWritten(records),
  })
  let connected: Promise<void> | null = null
  const portsOf = (kind: ComputationKind): SyncPorts => ({
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
      const what = `${computationWords[kind]} "${id}"`
      return GroupLease.acquire({
        kafka,
        groupId: syncGroup(config, id),
        topic: topics.settings,
        sessionTimeoutMs,
        what,
      })
    },
    newSyncId: () => randomBytes(9).toString('base64url'),
    now: Date.now,
  })
  return {
    sync: (kind, id, mode, list, options) =>
      syncComputation({ kind, id, mode }, list, portsOf(kind), options),
    remove: (kind, id, notify, options) => deleteComputation({ kind, id, notify }, portsOf(kind), options),
    async count(kind, id) {
      computationIn(settings, kind, id)
      await view.catchUp(signal)
      return view.count(id)
    },
    async close() {
      view.close()
      await writer.close()
    },
  }
}
