import { createReadStream } from 'node:fs'
import { addAbortSignal } from 'node:stream'
import type { MemberBatch } from '../../console/computations/memberships.ts'
import { checkedId, place, readList } from '../../console/computations/read-list.ts'
import type { SyncOptions } from '../../console/computations/sync.ts'
import { stopSignal } from '../context.ts'
import { sizeOf } from '../flags.ts'
import type { ProgressBar } from '../progress-bar.ts'

/** Read from a file at once. */
const chunkBytes = 256 * 1_024

/** The list in a file, or on stdin for `-`. Throws `usage` for what cannot be read; ends with the command. */
export function listIn(
  file: string,
  kind: 'audience' | 'trait',
  member = true,
  name: string | null = null,
): AsyncGenerator<MemberBatch, void, undefined> {
  if (file !== '-') sizeOf(file, 'a file with a line for each user')
  else if (process.stdin.isTTY) console.error('Reading from the terminal: a line for each user, Ctrl-D ends.')
  const input = file === '-' ? process.stdin : createReadStream(file, { highWaterMark: chunkBytes })
  return readList(addAbortSignal(stopSignal(), input), kind === 'trait' ? 'value' : 'id', member, name)
}

/** Users named by flags and in files; added ones first. */
export async function* changesIn(given: {
  add: readonly string[]
  remove: readonly string[]
  addFile: string | undefined
  removeFile: string | undefined
}): AsyncGenerator<MemberBatch, void, undefined> {
  for (const [list, users, member] of [
    ['--add', given.add, true],
    ['--remove', given.remove, false],
  ] as const) {
    for (const user of users) checkedId(user, place(list, 0))
    yield { users, values: null, member, list, line: 0 }
  }
  if (given.addFile !== undefined) yield* listIn(given.addFile, 'audience', true, '--add-file')
  if (given.removeFile !== undefined) yield* listIn(given.removeFile, 'audience', false, '--remove-file')
}

const phases = { finishing: 'finishing the sync before', reading: 'reading', sending: 'sending' }

export const syncProgress =
  (bar: ProgressBar): NonNullable<SyncOptions['onProgress']> =>
  (phase, done, total) => {
    const format =
      total === null
        ? '{value} users, {duration_formatted}'
        : '{bar} {percentage}%  {value} of {total} users, {eta_formatted} left'
    bar.show(`${phases[phase]}: ${format}`, done, total ?? 0)
  }
