import { createHash } from 'node:crypto'
import type { Computation, ComputationKind, SyncMode } from '../../core/computations.ts'
import { membershipCall, type Membership } from '../../core/membership.ts'
import { computationWords } from '../../core/settings-computation-rules.ts'
import { PostriderError } from '../../errors.ts'
import type { Settings } from '../ports.ts'
import type { Given, Lease, MembershipSink, MembershipStore } from './ports.ts'

/** Memberships that are written and acknowledged together, before their calls. */
const lotSize = 1_000

export interface SyncPorts {
  settings: Settings
  store: MembershipStore
  sink: MembershipSink
  /** Throws `conflict` when another process holds it. */
  acquire(id: string): Promise<Lease>
  newSyncId(): string
  /** Epoch milliseconds. */
  now(): number
}

export interface SyncOptions {
  /** An empty full list makes everybody leave: only when it is meant. */
  allowEmpty?: boolean
  onProgress?: (phase: 'finishing' | 'reading' | 'sending', done: number, total: number | null) => void
}

export interface SyncReport {
  /** Null when nobody changed: then no sync was begun. */
  syncId: string | null
  /** Users named by the list. */
  given: number
  entered: number
  left: number
  /** Calls sent again for a sync that was cut off before. */
  resumed: number
}

/** Calls of one membership always carry one messageId, however often they are sent. */
export function syncMessageId({ audienceId, userId, syncId }: Membership): string {
  return createHash('sha256').update(`${audienceId}\0${userId}\0${syncId}`).digest('base64url')
}

export function computationIn(settings: Settings, kind: ComputationKind, id: string): Computation {
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
 * Tells destinations who came and who went (contracts.md, Audiences). The whole list is read and found right
 * before anything is written. Crash-safe without transactions: a membership is acknowledged before its call is
 * sent, and whoever comes next first sends again what an open sync may not have sent.
 */
export async function syncComputation(
  { kind, id, mode }: { kind: ComputationKind; id: string; mode: SyncMode },
  list: AsyncIterable<Given>,
  ports: SyncPorts,
  options: SyncOptions = {},
): Promise<SyncReport> {
  const { settings, store } = ports
  computationIn(settings, kind, id)
  const given = await stage(list, store, options)
  if (mode === 'full' && given === 0 && !options.allowEmpty)
    throw new PostriderError(
      'usage',
      'the list is empty, so everybody would leave; give --allow-empty if that is meant',
    )
  const lease = await ports.acquire(id)
  try {
    // Whoever held the lease before may have written to both.
    await settings.catchUp()
    await store.catchUp()
    const resumed = await finishOpenSync(computationIn(settings, kind, id), lease, ports, options)
    const { entered, left } = await store.compare(id, mode !== 'change')
    if (entered + left === 0) return { syncId: null, given, entered, left, resumed }
    const syncId = ports.newSyncId()
    await settings.execute({ type: 'start_sync', kind, id, syncId, mode, at: ports.now() })
    await send(computationIn(settings, kind, id), syncId, entered + left, lease, ports, options)
    await settings.execute({ type: 'finish_sync', kind, id, syncId, at: ports.now(), entered, left })
    await store.catchUp()
    return { syncId, given, entered, left, resumed }
  } finally {
    await lease.release()
  }
}

/**
 * Deletes it; with `notify`, members are told that they left (or lost their value) first. Then its memberships are
 * taken from their topic. Repeating it goes on with what was cut off.
 */
export async function deleteComputation(
  { kind, id, notify }: { kind: ComputationKind; id: string; notify: boolean },
  ports: SyncPorts,
  options: SyncOptions = {},
): Promise<{ notified: number }> {
  const { settings, store, sink } = ports
  const nobody = async function* (): AsyncGenerator<Given> {}
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
    for (let users = store.usersAfter(id, '', lotSize); users.length > 0;) {
      lease.check()
      await sink.writeMemberships(users.map((userId) => ({ audienceId: id, userId, membership: null })))
      users = store.usersAfter(id, users.at(-1)!, lotSize)
    }
    await store.catchUp()
    return { notified }
  } finally {
    await lease.release()
  }
}

async function stage(
  list: AsyncIterable<Given>,
  store: MembershipStore,
  { onProgress }: SyncOptions,
): Promise<number> {
  store.beginList()
  let count = 0
  for await (const given of list) {
    const earlier = store.give(given)
    if (earlier !== null)
      throw new PostriderError(
        'usage',
        `line ${given.line} names the user of line ${earlier} again; nothing was changed`,
      )
    if (++count % lotSize === 0) onProgress?.('reading', count, null)
  }
  return count
}

/** The calls of a sync that was cut off may or may not have been sent: its memberships say which there are. */
async function finishOpenSync(
  computation: Computation,
  lease: Lease,
  { settings, store, sink, now }: SyncPorts,
  { onProgress }: SyncOptions,
): Promise<number> {
  const { openSync, kind, id } = computation
  if (openSync === null) return 0
  const { syncId } = openSync
  const counts = { entered: 0, left: 0 }
  let lot = store.writtenBy(id, syncId, '', lotSize)
  while (lot.length > 0) {
    lease.check()
    for (const membership of lot) {
      counts[membership.member ? 'entered' : 'left']++
      await sink.writeCall(membershipCall(membership, computation, syncMessageId(membership)))
    }
    onProgress?.('finishing', counts.entered + counts.left, null)
    lot = store.writtenBy(id, syncId, lot.at(-1)!.userId, lotSize)
  }
  await sink.flushCalls()
  await settings.execute({ type: 'finish_sync', kind, id, syncId, at: now(), ...counts })
  return counts.entered + counts.left
}

async function send(
  computation: Computation,
  syncId: string,
  total: number,
  lease: Lease,
  { store, sink, now }: SyncPorts,
  { onProgress }: SyncOptions,
): Promise<void> {
  const audienceId = computation.id
  let sent = 0
  let lot = store.changesAfter('', lotSize)
  while (lot.length > 0) {
    lease.check()
    const memberships = lot.map((change): Membership => ({ ...change, audienceId, syncId, at: now() }))
    await sink.writeMemberships(
      memberships.map((membership) => ({ audienceId, userId: membership.userId, membership })),
    )
    for (const membership of memberships)
      await sink.writeCall(membershipCall(membership, computation, syncMessageId(membership)))
    onProgress?.('sending', (sent += lot.length), total)
    lot = store.changesAfter(lot.at(-1)!.userId, lotSize)
  }
  await sink.flushCalls()
}
