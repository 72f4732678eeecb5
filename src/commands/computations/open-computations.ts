import { randomBytes } from 'node:crypto'
import type { Kafka } from 'kafkajs'
import { GroupLease } from '../../adapters/kafka/lease.ts'
import { MembershipWriter } from '../../adapters/kafka/membership-writer.ts'
import type { Logger } from '../../adapters/log.ts'
import { createCodecs } from '../../adapters/schema-registry/codecs.ts'
import type { SettingsLog } from '../../adapters/settings-log.ts'
import type { MembershipDatabase } from '../../adapters/store/membership-database.ts'
import { MembershipView } from '../../adapters/store/membership-view.ts'
import type { Config } from '../../config.ts'
import type { Computations } from '../../console/computations/ports.ts'
import {
  computationIn,
  deleteComputation,
  syncComputation,
  type SyncPorts,
} from '../../console/computations/sync.ts'
import type { ComputationKind } from '../../core/computations.ts'
import { computationWords } from '../../core/settings-computation-rules.ts'
import { topicNames } from '../../core/topics.ts'

export interface OpenComputations extends Computations {
  /** Resolves when closed; rejects when memberships cannot be read any more. */
  readonly ended: Promise<void>
  /** Only when nothing is under way any more. */
  close(): Promise<void>
}

/** Rejects with `setup`, `kafka_unavailable`, `registry_unavailable`, and `local` for the store's file. */
export async function openComputations(
  { config, kafka, log, settings }: { config: Config; kafka: Kafka; log: Logger; settings: SettingsLog },
  signal?: AbortSignal,
): Promise<OpenComputations> {
  const topics = topicNames(config.topicPrefix)
  const { groupId, sessionTimeoutMs } = config
  const codecs = createCodecs({ registry: config.registry, topics, log })
  await Promise.all([codecs.memberships.ready(), codecs.calls.ready()])
  const view = await MembershipView.open(
    { kafka, topic: topics.memberships, groupId, folder: config.storePath, codec: codecs.memberships, log },
    signal,
  )
  const portsOf = (
    kind: ComputationKind,
    room: MembershipDatabase,
    writer: MembershipWriter,
    connect: () => Promise<void>,
  ): SyncPorts => ({
    settings,
    store: {
      catchUp: () => view.catchUp(),
      count: (id) => room.count(id),
      beginList: () => room.beginList(),
      give: (given) => room.give(given),
      compare: (id, full) => room.compare(id, full),
      changesAfter: (userId, most) => room.changesAfter(userId, most),
      writtenBy: (id, syncId, userId, most) => room.writtenBy(id, syncId, userId, most),
      usersAfter: (id, userId, most) => room.usersAfter(id, userId, most),
    },
    sink: writer,
    async acquire(id) {
      await connect()
      const what = `${computationWords[kind]} "${id}"`
      return GroupLease.acquire({
        kafka,
        groupId: `${groupId}.sync.${id}`,
        topic: topics.settings,
        sessionTimeoutMs,
        what,
      })
    },
    newSyncId: () => randomBytes(9).toString('base64url'),
    now: Date.now,
  })
  const inRoom = async <T>(kind: ComputationKind, work: (ports: SyncPorts) => Promise<T>): Promise<T> => {
    const room = view.openRoom()
    // Its own: what fails of one sync is no other's.
    const writer = new MembershipWriter(kafka, topics, codecs)
    let connected: Promise<void> | null = null
    try {
      return await work(portsOf(kind, room, writer, () => (connected ??= writer.connect())))
    } finally {
      room.close()
      await writer.close()
    }
  }
  return {
    sync: (kind, id, mode, list, options) =>
      inRoom(kind, (ports) => syncComputation({ kind, id, mode }, list, ports, options)),
    remove: (kind, id, notify, options) =>
      inRoom(kind, (ports) => deleteComputation({ kind, id, notify }, ports, options)),
    async count(kind, id) {
      computationIn(settings, kind, id)
      await view.catchUp()
      return view.database.count(id)
    },
    ended: view.ended,
    close: () => view.close(),
  }
}
