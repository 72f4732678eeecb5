import { faultsText, type Fault } from '../../core/decision.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { PostriderError } from '../../errors.ts'

/** An id in UTF-8. */
export const maxIdBytes = 1_024

/** What is wrong with a user's id in a list, or null: `line 2 ${fault}`. */
export function userIdFault(id: string): string | null {
  if (id === '') return 'is empty'
  if (Buffer.byteLength(id) > maxIdBytes) return `holds an id of more than ${maxIdBytes} bytes`
  if (/\p{Cc}/u.test(id) || !id.isWellFormed()) return 'is not text: it holds control characters'
  if (id.trim() !== id) return 'begins or ends with white space'
  return null
}

/** A request about users that was refused: every fault by its place. Nothing was written. */
export class UsersRefused extends PostriderError {
  override name = 'UsersRefused'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    const code = faults.every((fault) => fault.code === 'not_found') ? 'not_found' : 'usage'
    super(code, `${faultsText(faults, maxShown)}; nothing was changed`)
    this.faults = faults
  }
}

/** Of faults in one line for people. */
const maxShown = 10

/**
 * Throws UsersRefused, with every fault, unless these can be the users of one request.
 *
 * @param place names an id by its index: `line 3`, `userIds.2`
 */
export function checkUserIds(userIds: readonly string[], place: (index: number) => string): void {
  const faults = userIdFaults(userIds, place)
  if (faults.length > 0) throw new UsersRefused(faults)
}

/** Throws UsersRefused, with every fault, unless a request can name these sources: all of them, or some that exist. */
export function checkSourceIds(
  sourceIds: readonly string[] | null | undefined,
  { sources }: Pick<SettingsState, 'sources'>,
): void {
  if (sourceIds?.length === 0)
    throw refusedSources('usage', 'sourceIds is empty: leave it out where all sources are meant')
  const unknown = [...new Set(sourceIds)].filter((id) => !sources.has(id))
  if (unknown.length > 0)
    throw refusedSources('not_found', ...unknown.map((id) => `source ${JSON.stringify(id)} does not exist`))
}

export const refusedSources = (code: Fault['code'], ...messages: string[]): UsersRefused =>
  new UsersRefused(messages.map((message) => ({ code, field: 'sourceIds', message })))

function userIdFaults(userIds: readonly string[], place: (index: number) => string): Fault[] {
  const refused = (field: string, message: string): Fault => ({ code: 'usage', field, message })
  if (userIds.length === 0) return [refused('userIds', 'no user is named')]
  if (userIds.length > maxUsersOfRequest)
    return [
      refused(
        'userIds',
        `more than ${maxUsersOfRequest} users are named, which is the most for one request: split the list`,
      ),
    ]
  const faults: Fault[] = []
  const places = new Map<string, number>()
  userIds.forEach((id, index) => {
    const fault = userIdFault(id)
    const earlier = places.get(id)
    if (fault !== null) faults.push(refused(`userIds.${index}`, `${place(index)} ${fault}`))
    else if (earlier === undefined) places.set(id, index)
    else faults.push(refused(`userIds.${index}`, `${place(index)} names the user of ${place(earlier)} again`))
  })
  return faults
}
