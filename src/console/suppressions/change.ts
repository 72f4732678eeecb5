import { everySource } from '../../core/suppression/suppressions.ts'
import type { DeletionReport } from '../deletions/deletions.ts'
import { noSource } from '../deletions/request.ts'
import { checkSourceIds, checkUserIds, UsersRefused } from '../user-ids.ts'
import type { KnownSuppressions, SuppressionChange, SuppressionPorts } from './suppression-records.ts'
import type { ChangeOptions, ChosenUsers, SuppressionReport, Suppressions } from './suppressions.ts'

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
