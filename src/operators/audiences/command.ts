// What the commands of audiences and computed traits have beside their operations.
import { boundHeap } from '../../adapters/bound-heap.ts'
import { checkedId, place, readList } from './read-list.ts'
import type { ComputationView } from './view.ts'
import type { SyncReport } from './sync.ts'
import type { ComputationKind } from '../../core/audience/computations.ts'
import { bytesOf } from '../../cli/bytes-of.ts'
import { usageError } from '../../cli/flags.ts'
import { io } from '../../cli/io.ts'
import type { CommandShape } from '../../cli/operations/operation-command.ts'

const oneALine = 'a file with a line for each user'

/** A whole list, or changes, in a file. */
const fromFile = (kind: ComputationKind): CommandShape => ({
  ...report(kind),
  addFlags: (command) => void command.argument('[file]', 'a line for each user; - or nothing for stdin'),
  read(_, [, file = '-']) {
    if (io().ownsProcess) boundHeap()
    const contentType = kind === 'audience' ? 'text/plain' : 'application/x-ndjson'
    return () => ({ lines: bytesOf(file, oneALine), contentType })
  },
})

const report = (kind: ComputationKind): CommandShape => ({
  text({ id, given, entered, left, resumed }: SyncReport & { id: string }) {
    const before = resumed === 0 ? '' : `; ${resumed} calls of a sync that was cut off were sent again first`
    const [came, went] = kind === 'audience' ? ['joined', 'left'] : ['got a new value', 'lost theirs']
    return `${kind} "${id}": ${given} users read, ${entered} ${came}, ${left} ${went}${before}`
  },
})

interface ChangeFlags {
  add?: string[]
  remove?: string[]
  addFile?: string
  removeFile?: string
}

/** Users named by flags and in files; added ones first. */
async function* changedMembers({
  add = [],
  remove = [],
  addFile,
  removeFile,
}: ChangeFlags): AsyncGenerator<Uint8Array> {
  for (const [list, users, file, member] of [
    ['--add', add, addFile, true],
    ['--remove', remove, removeFile, false],
  ] as const) {
    for (const user of users) checkedId(user, place(list, 0))
    yield linesOf(users, member)
    if (file !== undefined)
      for await (const batch of readList(bytesOf(file, oneALine), 'id', member, `${list}-file`))
        yield linesOf(batch.users, member)
  }
}

const linesOf = (users: readonly string[], member: boolean): Uint8Array =>
  Buffer.from(users.map((userId) => `${JSON.stringify({ userId, member })}\n`).join(''))

const changeAudience: CommandShape = {
  ...report('audience'),
  addFlags(command) {
    command
      .option('--add <user...>', 'user ids')
      .option('--remove <user...>', 'user ids')
      .option('--add-file <file>', 'one user id a line; - for stdin')
      .option('--remove-file <file>', 'one user id a line; - for stdin')
  },
  read(options) {
    const flags = options as ChangeFlags
    const { add = [], remove = [], addFile, removeFile } = flags
    if (add.length + remove.length === 0 && addFile === undefined && removeFile === undefined)
      throw usageError('nobody is named: give --add, --remove, --add-file or --remove-file')
    if (addFile === '-' && removeFile === '-')
      throw usageError('only one of --add-file and --remove-file can be stdin')
    if (io().ownsProcess) boundHeap()
    return () => ({ lines: changedMembers(flags), contentType: 'application/x-ndjson' })
  },
}

const list: CommandShape = {
  none: 'none',
  row: {
    headings: ['ID', 'NAME', 'PROPERTY', 'SOURCE', 'LAST SYNC'],
    of: ({ id, name, key, sourceId, lastSync }: ComputationView) => [
      id,
      name,
      key,
      sourceId,
      lastSync?.finishedAt ?? '-',
    ],
  },
}

export const computationShapes: Readonly<Record<string, CommandShape>> = {
  listAudiences: list,
  listTraits: list,
  syncAudience: fromFile('audience'),
  syncTrait: fromFile('trait'),
  changeAudience,
  changeTrait: fromFile('trait'),
}
