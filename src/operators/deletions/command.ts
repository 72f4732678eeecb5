// What the commands of deletions and suppressions have beside their operations.
import { Command } from 'commander'
import type { z } from 'zod'
import { bytesOf } from '../../cli/bytes-of.ts'
import { runAction } from '../../cli/context.ts'
import { repeatable, type JsonFlag, usageError } from '../../cli/flags.ts'
import { type CommandShape, performed, shownOn } from '../../cli/operations/operation-command.ts'
import { inSession } from '../../cli/operations/session.ts'
import {
  agreed,
  count,
  printable,
  table,
  print,
  printAside,
  printJson,
  withProgress,
} from '../../cli/terminal.ts'
import type { DeletionState } from '../../core/erasure/deletion-book.ts'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { PostriderError } from '../../errors.ts'
import { readList } from '../audiences/read-list.ts'
import { operationOf } from '../operations.ts'
import type { regulationReportSchema, suppressionSchema } from '../suppression/operations.ts'
import { type reportOf, resumedOf } from './deletions.ts'
import type { deletionSchema, deletionStatusSchema, erasuresOfUserSchema } from './operations.ts'
import { plannedDeletion } from './request.ts'
import { checkUserIds, UsersRefused } from './user-ids.ts'

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

function statusText({ id, requestedAt, actor, users, state, progress }: Status): string {
  const columns: (keyof Counts)[] = ['delivered', 'failed', 'skipped', 'waiting']
  if (progress.some(({ unknown }) => unknown > 0)) columns.push('unknown')
  const countsOf = (counts: Counts) => columns.map((column) => counts[column])
  return [
    `deletion   ${printable(id)}`,
    `requested  ${requestedAt}${actor === null ? '' : ` by ${printable(actor)}`}`,
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
  explained: (error) =>
    error instanceof UsersRefused
      ? new UsersRefused(error.faults.map((fault) => ({ ...fault, message: asArgument(fault.message) })))
      : error,
  text: regulationText,
})

/** Users have no names of fields here: they are counted. */
const asArgument = (message: string): string =>
  message.replace(/^subjectIds\.(\d+)/, (_, index) => `id ${Number(index) + 1}`)

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
  showErasuresOfUser: {
    text: ({ userId, erasures }: z.output<typeof erasuresOfUserSchema>) =>
      erasures.length === 0
        ? `${printable(userId)} was not erased in the last 40 days`
        : table(
            ['ERASED', 'SOURCE'],
            erasures.map(({ sourceId, erasedAt }) => [erasedAt, sourceId]),
          ),
  },
  listSuppressions: {
    none: 'no such user is suppressed',
    item: ({ userId, sourceId, since }: z.output<typeof suppressionSchema>) =>
      `${since}  ${sourceId ?? 'every source'}  ${printable(userId)}`,
  },
}

interface Flags extends JsonFlag, UserFlags {
  source?: string[]
  dryRun?: true
  yes?: true
}

export function deleteUserCommand(): Command {
  return new Command('delete-user')
    .argument('[id...]', 'user ids')
    .summary('erase users, and ask destinations to forget them')
    .description(
      'Requests the deletion of users: what waits of their calls is dropped, their dead letters are gone, and every ' +
        `destination of the sources gets a delete call for each user. At most ${maxUsersOfRequest} users at once. ` +
        'A list with anything wrong in it changes nothing. Affected are all sources there are, disabled ones too, ' +
        'unless --source names some: whether a source ever had a call of a user is not looked at. A delete call goes ' +
        'to each enabled source that has an enabled destination. At a terminal it asks first, unless --source or --yes is ' +
        'given.',
    )
    .option('--file <file>', 'one user id a line; - for stdin')
    .addOption(repeatable('--source <id>', 'only at this source (default: at all of them); can be repeated'))
    .option('--dry-run', 'say what would be erased and notified, and change nothing')
    .option('--yes', 'do not ask')
    .option('--json', 'as JSON')
    .action(runAction(deleteUsers))
}

async function deleteUsers(ids: string[], flags: Flags, command: Command): Promise<void> {
  const { source, dryRun = false, yes, json } = flags
  const { userIds, place } = await usersGiven(ids, flags)
  // Before anything is connected: what is wrong with the list is wrong without Kafka, too.
  checkUserIds(userIds, place)
  await inSession(command, async (session) => {
    const { signal } = session
    const { state } = session.settings
    const given = { userIds, ...(source && { sourceIds: source }) }
    if (dryRun) {
      const planned = plannedDeletion(given, state)
      if (json) printJson({ dryRun, ...planned })
      else print(sentence(planned, { erased: 'would be erased', written: 'would be written' }))
      return
    }
    if (!yes && source === undefined) {
      const planned = plannedDeletion(given, state)
      const question = `${count(planned.users, 'user')} of all sources (${sourcesIn(planned)}), ${count(planned.deleteCalls, 'delete call')}: erase?`
      if (!(await agreed(question, signal)))
        throw new PostriderError('conflict', 'not confirmed; nothing was changed')
    }
    const operation = operationOf('createDeletion')
    let isNamed = json === true
    const name = ({ id }: { id?: string }) => {
      if (!isNamed) printAside(`deletion ${id}`)
      isNamed = true
    }
    const report = (await performed(operation, { body: given }, session, {}, name)) as Report
    if (json) return printJson(report)
    print(sentence(report, { erased: 'erased', written: 'written' }))
    print(`\`postrider deletions show ${report.id}\` says what became of it`)
  })
}

type Report = ReturnType<typeof reportOf>
type Planned = Omit<Report, 'id'>

const sourcesIn = ({ sources }: Planned): string => sources.map(({ sourceId }) => sourceId).join(', ')

function sentence(report: Planned, words: { erased: string; written: string }): string {
  const notified = report.sources.filter((source) => source.notified).map(({ sourceId }) => sourceId)
  const silent = report.sources.filter((source) => !source.notified).map(({ sourceId }) => sourceId)
  return (
    `${count(report.users, 'user')} ${words.erased} at ${sourcesIn(report)}; ` +
    (notified.length > 0
      ? `${count(report.deleteCalls, 'delete call')} ${words.written} for the destinations of ${notified.join(', ')}`
      : 'there is no destination to notify') +
    (notified.length > 0 && silent.length > 0 ? `; no destination to notify at ${silent.join(', ')}` : '')
  )
}

/** One request, or every one that was interrupted. */
export const resumeCommand = (): Command =>
  new Command('resume')
    .argument('[id]', 'of a request; all that were interrupted unless given')
    .summary('Finish what was interrupted')
    .description(
      'Writes the delete calls of a request that was interrupted, or of every one. Those that were written before ' +
        'keep their messageId, by which receivers know them.',
    )
    .option('--json', 'one JSON object a line')
    .action(runAction(resume))

async function resume(id: string | undefined, { json }: JsonFlag, command: Command): Promise<void> {
  await inSession(command, async ({ deletions, signal }) => {
    const reports = await withProgress((bar) => {
      const shown = shownOn(bar)
      const onProgress = (phase: string, done: number, total: number) => shown({ phase, done, total })
      return deletions.resume(id ?? null, { signal, onProgress })
    })
    if (json) return reports.forEach((report) => printJson(resumedOf(report)))
    if (reports.length === 0) return print('nothing is to be resumed')
    for (const { requestId, deleteCalls, missing } of reports)
      print(
        `deletion ${printable(requestId)}: ${count(deleteCalls, 'delete call')} written` +
          (missing > 0 ? '; some of its users were never erased: give all of them again' : ''),
      )
  })
}

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
