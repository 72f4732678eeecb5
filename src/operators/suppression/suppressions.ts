import { reportOf, type DeletionReport } from '../deletions/deletions.ts'
import { noSource } from '../deletions/request.ts'
import { checkSourceIds, checkUserIds, UsersRefused } from '../deletions/user-ids.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { everySource, type Suppression } from '../../core/suppression/suppressions.ts'

/** Users, at some sources or at every one. */
export interface ChosenUsers {
  userIds: readonly string[]
  /** Null: every source, also those that are made later. */
  sourceIds?: readonly string[] | null | undefined
}

export interface ChangeOptions {
  /** Names an id by its index: `line 3`, `userIds.2`. */
  place?: (index: number) => string
}

/** What a change came to. */
export interface SuppressionReport {
  users: number
  /** Null: every one. */
  sourceIds: readonly string[] | null
  /** Users for whom it changed anything. */
  changed: number
}

/** A suppression that is in force. */
export interface SuppressionItem {
  userId: string
  /** Null: at every source. */
  sourceId: string | null
  since: number
}

export interface ListedSuppressions {
  items: SuppressionItem[]
  /** Where the next page begins; null on the last one. */
  next: number | null
}

/** Suppressed users, for commands and API alike. */
export interface Suppressions {
  /** No call of these users is taken or delivered any more. Throws UsersRefused before anything is written. */
  suppress(given: ChosenUsers, options?: ChangeOptions): Promise<SuppressionReport>
  /** Ends it. Throws UsersRefused, also for a user who is suppressed at every source when some are named. */
  unsuppress(given: ChosenUsers, options?: ChangeOptions): Promise<SuppressionReport>
  /** At most `limit` of those that are in force, from this place on, the oldest first. */
  page(from: number, limit: number, userId: string | null, signal?: AbortSignal): Promise<ListedSuppressions>
}

// As JSON, for the admin API and `--json` alike.
export const itemOf = ({ userId, sourceId, since }: SuppressionItem) => ({
  userId,
  sourceId,
  since: new Date(since).toISOString(),
})

export const suppressedOf = (
  { users, sourceIds, changed }: SuppressionReport,
  deletion: DeletionReport | null,
) => ({ users, sourceIds, changed, deletion: deletion && reportOf(deletion) })

/** Changes per write. */
const changesAtOnce = 5_000

export async function suppressUsers(
  ports: SuppressionPorts,
  given: ChosenUsers,
  options: ChangeOptions = {},
): Promise<SuppressionReport> {
  const known = await checked(ports, given, options)
  const at = ports.now()
  return write(ports, given, (userId) =>
    (given.sourceIds ?? [everySource])
      .filter((sourceId) => !known.has(sourceId, userId))
      .map((sourceId) => ({ begins: true, suppression: { sourceId, userId, at } })),
  )
}

/** Without sources it ends every suppression of a user: the one at every source, and those at single ones. */
export async function unsuppressUsers(
  ports: SuppressionPorts,
  given: ChosenUsers,
  options: ChangeOptions = {},
): Promise<SuppressionReport> {
  const known = await checked(ports, given, options)
  const { userIds, sourceIds } = given
  if (sourceIds) checkNotEverywhere(userIds, known, options)
  // Sources are never taken away.
  const all = sourceIds ?? [everySource, ...ports.settings.state.sources.keys()]
  return write(ports, given, (userId) =>
    all
      .filter((sourceId) => known.has(sourceId, userId))
      .map((sourceId) => ({ begins: false, sourceId, userId })),
  )
}

/**
 * Suppresses users, and then deletes what there is of them: no call of theirs can come in between. What would have the
 * deletion refused is found before anything is written.
 */
export async function suppressAndDelete(
  { suppressions, settings }: { suppressions: Suppressions; settings: SuppressionPorts['settings'] },
  given: ChosenUsers,
  remove: () => Promise<DeletionReport>,
  options: ChangeOptions = {},
): Promise<{ report: SuppressionReport; deletion: DeletionReport }> {
  await settings.catchUp()
  if (settings.state.sources.size === 0) throw noSource()
  const report = await suppressions.suppress(given, options)
  return { report, deletion: await remove() }
}

async function checked(
  { settings, known }: SuppressionPorts,
  { userIds, sourceIds }: ChosenUsers,
  { place = placeOf }: ChangeOptions,
): Promise<KnownSuppressions> {
  checkUserIds(userIds, place)
  await settings.catchUp()
  checkSourceIds(sourceIds, settings.state)
  return known()
}

const placeOf = (index: number): string => `userIds.${index}`

/** A suppression of every source has no exceptions. */
function checkNotEverywhere(
  userIds: readonly string[],
  known: KnownSuppressions,
  { place = placeOf }: ChangeOptions,
): void {
  const faults = userIds.flatMap((userId, index) =>
    known.has(everySource, userId)
      ? [
          {
            code: 'usage' as const,
            field: `userIds.${index}`,
            message: `${place(index)} names a user who is suppressed at every source: end that without naming sources`,
          },
        ]
      : [],
  )
  if (faults.length > 0) throw new UsersRefused(faults)
}

async function write(
  ports: SuppressionPorts,
  { userIds, sourceIds }: ChosenUsers,
  changesOf: (userId: string) => SuppressionChange[],
): Promise<SuppressionReport> {
  let changed = 0
  const batch: SuppressionChange[] = []
  for (const userId of userIds) {
    const changes = changesOf(userId)
    if (changes.length > 0) changed++
    batch.push(...changes)
    if (batch.length >= changesAtOnce) await ports.write(batch.splice(0))
  }
  if (batch.length > 0) await ports.write(batch)
  return { users: userIds.length, sourceIds: sourceIds ? [...new Set(sourceIds)] : null, changed }
}

type Placed = SuppressionItem & { offset: number }

/** What is in force, from this place of the topic on, in the order in which it began. */
async function* suppressionsFrom(
  ports: SuppressionPorts,
  from: number,
  wanted: string | null,
  signal: AbortSignal | undefined,
): AsyncGenerator<Placed, void, undefined> {
  const known = await ports.known(signal)
  if (wanted !== null) {
    await ports.settings.catchUp()
    const all = [everySource, ...ports.settings.state.sources.keys()]
    if (!all.some((sourceId) => known.has(sourceId, wanted))) return
  }
  for await (const { sourceId, userId, offset, appendedAt } of ports.read(from, signal)) {
    if (wanted !== null && userId !== wanted) continue
    // Compaction comes later: until then what has ended, or begun again, lies there too.
    if (!known.isNewest(sourceId, userId, offset)) continue
    yield { userId, sourceId: sourceId === everySource ? null : sourceId, since: appendedAt, offset }
  }
}

export async function pageOfSuppressions(
  ports: SuppressionPorts,
  from: number,
  limit: number,
  userId: string | null,
  signal?: AbortSignal,
): Promise<ListedSuppressions> {
  const items: SuppressionItem[] = []
  for await (const { offset, ...item } of suppressionsFrom(ports, from, userId, signal)) {
    if (items.length === limit) return { items, next: offset }
    items.push(item)
  }
  return { items, next: null }
}

/** The suppressed users, as far as they are folded. */
export interface KnownSuppressions {
  /** Whether there is a suppression of just this source, or of every one. */
  has(sourceId: string, userId: string): boolean
  /** Whether the record at this offset is what is in force of the user. */
  isNewest(sourceId: string, userId: string, offset: number): boolean
}

/** A record of `webhooks.suppressions` that begins a suppression. */
export interface StoredSuppression {
  sourceId: string
  userId: string
  offset: number
  /** When the broker appended it, epoch milliseconds. */
  appendedAt: number
}

/** Begins a suppression, or ends the one of this source and user. */
export type SuppressionChange =
  { begins: true; suppression: Suppression } | { begins: false; sourceId: string; userId: string }

/** All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface SuppressionPorts {
  settings: { readonly state: SettingsState; catchUp(): Promise<void> }
  /** Resolves once everything is folded that lay in the topic at the call. */
  known(signal?: AbortSignal): Promise<KnownSuppressions>
  /** Resolves once all of them are acknowledged by all replicas. */
  write(changes: readonly SuppressionChange[]): Promise<void>
  /** What begins a suppression, from this offset on, in the order in which it was written. */
  read(from: number, signal?: AbortSignal): AsyncIterable<StoredSuppression>
  /** Epoch milliseconds. */
  now(): number
}
