import { randomBytes } from 'node:crypto'
import { GroupLease } from '../../adapters/kafka/group/lease.ts'
import { MembershipWriter } from '../../adapters/kafka/write/membership-writer.ts'
import type { IgnoredCounts } from '../../adapters/folded-log/ignored-records.ts'
import { MembershipView } from '../../adapters/store/membership-view.ts'
import type { Config } from '../../config/config.ts'
import {
  type ComputationActions,
  computationIn,
  deleteComputation,
  syncComputation,
  type SettingsOfSyncs,
  type SyncPorts,
} from '../../console/computations/sync.ts'
import type { ComputationKind } from '../../core/audience/computations.ts'
import type { PlacedMembership } from '../../core/audience/membership.ts'
import { computationWords } from '../../core/settings/computation-rules.ts'
import type { Context } from '../context.ts'

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
    const writer = new MembershipWriter({ kafka, topics, codecs, log, onWritten })
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
          return GroupLease.acquire({
            kafka,
            groupId: syncGroup(config, id),
            topic: topics.settings,
            sessionTimeoutMs,
            what: `${computationWords[kind]} "${id}"`,
          })
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
