import { Command } from 'commander'
import { reportOf } from '../../console/deletions/deletions.ts'
import { checkUserIds } from '../../console/user-ids.ts'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { runAction } from '../context.ts'
import { usersGiven, type UserFlags } from './given-users.ts'
import { deletionProgress, withDeletions } from './session.ts'
import { repeatable, type JsonFlag } from '../flags.ts'
import { count, print, printJson } from '../output.ts'
import { withProgress } from '../progress-bar.ts'

interface Flags extends JsonFlag, UserFlags {
  source?: string[]
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
        'to each enabled source that has an enabled destination.',
    )
    .option('--file <file>', 'one user id a line; - for stdin')
    .addOption(repeatable('--source <id>', 'only at this source (default: at all of them); can be repeated'))
    .option('--json', 'as JSON')
    .action(runAction(deleteUsers))
}

async function deleteUsers(ids: string[], flags: Flags, command: Command): Promise<void> {
  const { source, json } = flags
  const { userIds, place } = await usersGiven(ids, flags)
  // Before anything is connected: what is wrong with the list is wrong without Kafka, too.
  checkUserIds(userIds, place)
  await withDeletions(command, async (deletions, signal) => {
    const onStart = (requestId: string) => console.error(`deletion ${requestId}`)
    const report = await withProgress((bar) =>
      deletions.request(
        { userIds, sourceIds: source },
        { onProgress: deletionProgress(bar), signal, place, ...(!json && { onStart }) },
      ),
    )
    if (json) return printJson(reportOf(report))
    const deleteCalls = report.sources.filter(({ notified }) => notified).map(({ sourceId }) => sourceId)
    const silent = report.sources.filter(({ notified }) => !notified).map(({ sourceId }) => sourceId)
    print(
      `${count(report.users, 'user')} erased at ${report.sources.map(({ sourceId }) => sourceId).join(', ')}; ` +
        (deleteCalls.length > 0
          ? `${count(report.deleteCalls, 'delete call')} written for the destinations of ${deleteCalls.join(', ')}`
          : 'there is no destination to notify') +
        (deleteCalls.length > 0 && silent.length > 0
          ? `; no destination to notify at ${silent.join(', ')}`
          : ''),
    )
    print(`\`postrider deletions show ${report.requestId}\` says what became of it`)
  })
}
