// What the commands of deletions and suppressions have beside their operations.
import type { z } from 'zod'
import type { deletionSchema, deletionStatusSchema } from '../../console/api/resources/deletions.ts'
import type { regulationReportSchema, suppressionSchema } from '../../operators/suppression/operations.ts'
import { checkUserIds } from '../../console/user-ids.ts'
import type { DeletionState } from '../../core/erasure/deletion-book.ts'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { count, printable, table } from '../output.ts'
import type { CommandShape } from '../operations/operation-command.ts'
import { usersGiven, type UserFlags } from './given-users.ts'

type Summary = z.output<typeof deletionSchema>
type Status = z.output<typeof deletionStatusSchema>
type Counts = Omit<Status['progress'][number]['destinations'][number], 'destinationId'>

const words: Record<DeletionState, string> = {
  finished: 'finished',
  interrupted: 'interrupted',
  cut_off: 'cut off',
}

const hints: Record<DeletionState, (id: string) => string> = {
  finished: () => '',
  interrupted: (id) => `: delete calls are missing; \`postrider deletions resume ${id}\` writes them`,
  cut_off: () => ': it ended before all of its users were erased; give all of them again',
}

function statusText({ id, requestedAt, users, state, progress }: Status): string {
  const columns: (keyof Counts)[] = ['delivered', 'failed', 'skipped', 'waiting']
  if (progress.some(({ unknown }) => unknown > 0)) columns.push('unknown')
  const countsOf = (counts: Counts) => columns.map((column) => counts[column])
  return [
    `deletion   ${printable(id)}`,
    `requested  ${requestedAt}`,
    `users      ${users}`,
    `state      ${words[state]}${hints[state](id)}`,
    '',
    table(
      ['SOURCE', 'DESTINATION', 'REQUESTED', ...columns],
      progress.flatMap(({ sourceId, requested, destinations, ...whole }) => [
        [sourceId, requested === 0 ? 'no destination' : 'all', requested, ...countsOf(whole)],
        ...destinations.map(({ destinationId, ...counts }) => [
          sourceId,
          destinationId,
          requested,
          ...countsOf(counts),
        ]),
      ]),
    ),
  ].join('\n')
}

type Regulation = z.output<typeof regulationReportSchema>

function regulationText({ regulationType, users, sourceIds, changed, deletion }: Regulation): string {
  const isEnd = regulationType === 'UNSUPPRESS'
  const where = sourceIds === null ? 'every source' : sourceIds.join(', ')
  const others = users - changed
  const before = others === 0 ? '' : `; ${others} of them ${isEnd ? 'were not before' : 'were so before'}`
  const lines = [
    `${count(users, 'user')} ${isEnd ? 'not suppressed' : 'suppressed'} at ${where}${isEnd ? ' any more' : ''}${before}`,
  ]
  if (deletion)
    lines.push(
      `and erased; ${count(deletion.deleteCalls, 'delete call')} written: ` +
        `\`postrider deletions show ${deletion.id}\` says what became of it`,
    )
  return lines.join('\n')
}

/** Users by arguments or in a file, at some sources or at every one. */
const regulation = (
  typeOf: (options: { delete?: true }) => string,
  summary: string,
  description: string,
): CommandShape => ({
  summary,
  description,
  addFlags: (command) =>
    void command.argument('[id...]', 'user ids').option('--file <file>', 'one user id a line; - for stdin'),
  async read(options, [ids]) {
    const { userIds, place } = await usersGiven(ids as unknown as string[], options as UserFlags)
    // Before anything is connected: what is wrong with the list is wrong without Kafka, too.
    checkUserIds(userIds, place)
    return () => ({ body: { regulationType: typeOf(options as { delete?: true }), subjectIds: userIds } })
  },
  text: regulationText,
})

const atMost = `At most ${maxUsersOfRequest} users at once; a list with anything wrong in it changes nothing.`

const suppress = regulation(
  (options) => (options.delete ? 'SUPPRESS_WITH_DELETE' : 'SUPPRESS_ONLY'),
  'Take and deliver no more calls of users',
  'Suppresses users: collectors drop their calls, and forwarders skip those that came to Kafka another way, or ' +
    `wait there. Running parts follow within a second. It holds until \`postrider unsuppress\` ends it. ${atMost}`,
)

export const suppressShape: CommandShape = {
  ...suppress,
  addFlags(command) {
    suppress.addFlags!(command)
    command.option('--delete', 'then request their deletion as well, as `postrider delete-user` does')
  },
}

export const unsuppressShape = regulation(
  () => 'UNSUPPRESS',
  'Take and deliver calls of users again',
  'Ends the suppression of users. Calls that were dropped or skipped meanwhile do not come back; calls that wait ' +
    'in a retry tier are delivered when they come due. Without --source it ends every suppression of these users; ' +
    `with it, a user who is suppressed at every source is refused. ${atMost}`,
)

export const deletionShapes: Readonly<Record<string, CommandShape>> = {
  listDeletions: {
    none: 'no deletion requests; `postrider delete-user --help` shows how to make one',
    row: {
      headings: ['ID', 'REQUESTED', 'USERS', 'STATE', 'SOURCES'],
      of: ({ id, requestedAt, users, state, sources }: Summary) => [
        id,
        requestedAt,
        users,
        words[state],
        sources.join(', '),
      ],
    },
  },
  showDeletion: { text: statusText },
  listSuppressions: {
    none: 'no such user is suppressed',
    item: ({ userId, sourceId, since }: z.output<typeof suppressionSchema>) =>
      `${since}  ${sourceId ?? 'every source'}  ${printable(userId)}`,
  },
}
