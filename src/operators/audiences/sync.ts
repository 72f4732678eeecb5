import { hash } from 'node:crypto'
import type { Lease } from '../lease.ts'
import { SettingsRefused, type SettingsWriter } from '../settings/writer.ts'
import type { Computation, ComputationKind, SyncMode } from '../../core/audience/computations.ts'
import { membershipCalls, type Membership } from '../../core/audience/membership.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { computationWords, sourceFault } from '../../core/settings/computation-rules.ts'
import { PostriderError } from '../../errors.ts'

/** What a sync needs of them. */
export type SettingsOfSyncs = Pick<SettingsWriter, 'state' | 'catchUp' | 'execute'>

export interface SyncPorts {
  settings: SettingsOfSyncs
  store: MembershipStore
  sink: MembershipSink
  /** Throws `conflict` when another process holds it. */
  acquire(id: string): Promise<Lease>
  newSyncId(): string
  /** Epoch milliseconds. */
  now(): number
}

export interface SyncOptions {
  /** An empty full list removes all members: only when it is meant. */
  allowEmpty?: boolean
  onProgress?: (phase: SyncPhase, done: number, total: number | null) => void
  /** Ends it early, with what the signal aborts with: the next sync finishes what was begun. */
  signal?: AbortSignal
}

export type SyncPhase = 'finishing' | 'reading' | 'sending'

export interface SyncReport {
  /** Null when nothing changed: then no sync was begun. */
  syncId: string | null
  /** Users named by the list. */
  given: number
  entered: number
  left: number
  /** Calls sent again for a sync that was cut off before. */
  resumed: number
}

/**
 * Audiences and computed traits, for commands and API alike. Definitions are made by the settings. Several syncs may
 * be in flight, of one audience or trait only one: `conflict`.
 */
export interface ComputationActions {
  sync(
    kind: ComputationKind,
    id: string,
    mode: 'full' | 'change',
    list: AsyncIterable<MemberBatch>,
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
}

/** Calls of one membership always carry one messageId, however often they are sent. */
export function syncMessageId({ audienceId, userId, syncId }: Membership): string {
  return hash('sha256', `${audienceId}\0${userId}\0${syncId}`, 'base64url')
}

export function computationIn(
  settings: Pick<SettingsWriter, 'state'>,
  kind: ComputationKind,
  id: string,
): Computation {
  const found = settings.state.computations.get(id)
  const words = computationWords[kind]
  const command = kind === 'audience' ? 'audiences' : 'traits'
  if (!found || found.kind !== kind || found.deleted)
    throw new PostriderError(
      'not_found',
      `${words} ${JSON.stringify(id)} ${found?.kind === kind ? 'was deleted' : 'does not exist'}; \`postrider ${command} list\` shows all`,
    )
  return found
}

/**
 * Notifies destinations of users who joined or left (docs/audiences.md). The whole list is read and checked
 * before anything is written. Crash-safe without transactions: a membership is acknowledged before its call is
 * sent, and the next sync first sends again what an open one may not have sent. Throws `conflict` while
 * another sync of it is running.
 */
export async function syncComputation(
  { kind, id, mode }: { kind: ComputationKind; id: string; mode: SyncMode },
  batches: AsyncIterable<MemberBatch>,
  ports: SyncPorts,
  options: SyncOptions = {},
): Promise<SyncReport> {
  const { settings, store } = ports
  computationIn(settings, kind, id)
  const list = store.openList()
  try {
    await stage(batches, list, options)
    const given = list.count
    if (mode === 'full' && given === 0 && !options.allowEmpty)
      throw new PostriderError(
        'usage',
        'the list is empty, so everybody would leave; give --allow-empty (in the admin API allowEmpty=true) if that is meant',
      )
    const lease = await ports.acquire(id)
    try {
      // The previous holder of the lease may have written to both.
      await settings.catchUp()
      await store.catchUp()
      const computation = computationIn(settings, kind, id)
      const { entered, left } = await list.compare(id, mode !== 'change')
      const resumed = await finishOpenSync(computation, lease, ports, options)
      if (entered + left === 0) return { syncId: null, given, entered, left, resumed }
      const syncId = ports.newSyncId()
      await settings.execute({ type: 'start_sync', kind, id, syncId, mode, at: ports.now() })
      const sending = { computation, syncId, total: entered + left }
      await send(list.changes(), sending, lease, ports, options)
      await settings.execute({ type: 'finish_sync', kind, id, syncId, at: ports.now(), entered, left })
      return { syncId, given, entered, left, resumed }
    } finally {
      await lease.release()
    }
  } finally {
    list.close()
  }
}

/**
 * Deletes it; with `notify`, destinations are notified first that they left (or lost their value). Then its memberships are
 * taken from their topic. Repeating it goes on with what was cut off.
 */
export async function deleteComputation(
  { kind, id, notify }: { kind: ComputationKind; id: string; notify: boolean },
  ports: SyncPorts,
  options: SyncOptions = {},
): Promise<{ notified: number }> {
  const { settings, store, sink } = ports
  const nobody = async function* (): AsyncGenerator<MemberBatch> {}
  const found = settings.state.computations.get(id)
  if (!found?.deleted) computationIn(settings, kind, id)
  let notified = 0
  if (notify && !found?.deleted) {
    const report = await syncComputation({ kind, id, mode: 'farewell' }, nobody(), ports, options)
    notified = report.left
  }
  const lease = await ports.acquire(id)
  try {
    await settings.execute({ type: 'delete_computation', kind, id })
    await store.catchUp()
    for (const users of store.users(id)) {
      goOn(lease, options)
      await sink.writeMemberships(users.map((userId) => ({ audienceId: id, userId, membership: null })))
    }
    return { notified }
  } finally {
    await lease.release()
  }
}

function goOn(lease: Lease, { signal }: SyncOptions): void {
  lease.check()
  signal?.throwIfAborted()
}

async function stage(
  batches: AsyncIterable<MemberBatch>,
  list: StagedList,
  { onProgress }: SyncOptions,
): Promise<void> {
  for await (const batch of batches) {
    list.add(batch)
    onProgress?.('reading', list.count, null)
  }
}

/** The calls of a sync that was cut off may or may not have been sent: its memberships say which there are. */
async function finishOpenSync(
  computation: Computation,
  lease: Lease,
  { settings, store, sink, now }: SyncPorts,
  options: SyncOptions,
): Promise<number> {
  const { openSync, kind, id } = computation
  if (openSync === null) return 0
  const fault = sourceFault(computation, settings.state)
  if (fault !== null) throw new SettingsRefused([fault])
  const { syncId } = openSync
  const callOf = membershipCalls(computation)
  const counts = { entered: 0, left: 0 }
  for (const memberships of store.writtenBy(id, syncId)) {
    goOn(lease, options)
    await sink.writeCalls(memberships.map((membership) => callOf(membership, syncMessageId(membership))))
    for (const { member } of memberships) counts[member ? 'entered' : 'left']++
    options.onProgress?.('finishing', counts.entered + counts.left, null)
  }
  await sink.flushCalls()
  await settings.execute({ type: 'finish_sync', kind, id, syncId, at: now(), ...counts })
  return counts.entered + counts.left
}

/** While the calls of one batch are made, the next one's memberships are on their way already. */
async function send(
  changes: Iterable<Change[]>,
  { computation, syncId, total }: { computation: Computation; syncId: string; total: number },
  lease: Lease,
  { sink, now }: SyncPorts,
  options: SyncOptions,
): Promise<void> {
  const audienceId = computation.id
  const callOf = membershipCalls(computation)
  const writeCalls = async (memberships: readonly Membership[]) => {
    await sink.writeCalls(memberships.map((membership) => callOf(membership, syncMessageId(membership))))
    options.onProgress?.('sending', (sent += memberships.length), total)
  }
  let sent = 0
  let written: Membership[] = []
  for (const batch of changes) {
    goOn(lease, options)
    const at = now()
    const memberships = batch.map((change): Membership => ({ ...change, audienceId, syncId, at }))
    const records = memberships.map((membership) => ({ audienceId, userId: membership.userId, membership }))
    await Promise.all([sink.writeMemberships(records), writeCalls(written)])
    written = memberships
  }
  await writeCalls(written)
  await sink.flushCalls()
}

/** Users that follow one another in a list. */
export interface MemberBatch {
  users: readonly string[]
  /** Of a computed trait: JSON text for each user, null to take the value away. Null for an audience. */
  values: readonly (string | null)[] | null
  /** Of an audience: whether they are to be in, or out. */
  member: boolean
  /** What errors call the list, where there are several. */
  list: string | null
  /** Of the first of them, from 1; 0 for those that stand on no line. */
  line: number
}

export interface Change {
  userId: string
  member: boolean
  value: string | null
}

/** The memberships as they lie in their topic. What is given in batches is read while it is asked for. */
export interface MembershipStore {
  /** Resolves once everything that lay in the topic at the call is in the view. */
  catchUp(): Promise<void>
  /** How many are members now. */
  count(audienceId: string): number
  /** Room on disk for a list, to compare with the memberships. Close it. */
  openList(): StagedList
  /** The memberships that a sync wrote. */
  writtenBy(audienceId: string, syncId: string): Iterable<Membership[]>
  /** The users that the view knows of an audience, members or not. */
  users(audienceId: string): Iterable<string[]>
}

/** One list of users. Its memory does not grow with it. Throws `local` when there is no room on disk. */
export interface StagedList {
  add(batch: MemberBatch): void
  /** Users that were added. */
  readonly count: number
  /**
   * Compares the list with the view and keeps what is to change. `full`: members who are not in the list leave.
   * Works in slices and yields between them. Throws `usage` for a user that is in the list twice.
   */
  compare(audienceId: string, full: boolean): Promise<{ entered: number; left: number }>
  /** What is to change, after `compare`. */
  changes(): Iterable<Change[]>
  close(): void
}

/** Both reject with `kafka_unavailable`; what was added before may be there all the same. */
export interface MembershipSink {
  /** Resolves once all of them are acknowledged by all replicas. A null takes the record away for good. */
  writeMemberships(
    records: readonly { audienceId: string; userId: string; membership: Membership | null }[],
  ): Promise<void>
  /** Resolves when there is room for more. */
  writeCalls(calls: readonly AnalyticsCall[]): Promise<void>
  /** Resolves once every call is acknowledged by all replicas. */
  flushCalls(): Promise<void>
}
