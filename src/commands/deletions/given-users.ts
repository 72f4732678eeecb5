import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { readList } from '../../console/computations/read-list.ts'
import { bytesOf } from '../bytes-of.ts'
import { usageError } from '../flags.ts'

export interface UserFlags {
  file?: string
}

/**
 * The users that a command is about, from its arguments or its file; `place` names one of them by its index. Throws
 * `usage` unless they come from one of the two.
 */
export async function usersGiven(
  ids: string[],
  { file }: UserFlags,
): Promise<{ userIds: string[]; place: (index: number) => string }> {
  if (ids.length > 0 === (file !== undefined))
    throw usageError('name the users, either as arguments or with --file')
  const userIds = file === undefined ? ids : await idsIn(file)
  return { userIds, place: (index) => (file === undefined ? `id ${index + 1}` : `line ${index + 1}`) }
}

/** All lines are read and found right before anything is written. */
async function idsIn(file: string): Promise<string[]> {
  const ids: string[] = []
  for await (const { users } of readList(bytesOf(file, 'a file with a line for each user'), 'id')) {
    for (const user of users) ids.push(user)
    if (ids.length > maxUsersOfRequest) break
  }
  return ids
}
