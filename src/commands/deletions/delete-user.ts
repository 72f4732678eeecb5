import { Command } from 'commander'
import type { reportOf } from '../../console/deletions/deletions.ts'
import { plannedDeletion } from '../../console/deletions/request.ts'
import { checkUserIds } from '../../console/user-ids.ts'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { PostriderError } from '../../errors.ts'
import { agreed } from '../ask.ts'
import { operationOf } from '../../console/api/operations.ts'
import { runAction } from '../context.ts'
import { usersGiven, type UserFlags } from './given-users.ts'
import { repeatable, type JsonFlag } from '../flags.ts'
import { count, print, printJson } from '../output.ts'
import { performed } from '../operations/operation-command.ts'
import { inSession } from '../operations/session.ts'

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
      if (!(await agreed(question, undefined, signal)))
        throw new PostriderError('conflict', 'not confirmed; nothing was changed')
    }
    const report = (await performed(operationOf('createDeletion'), { body: given }, session)) as Report
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
