import { Command } from 'commander'
import { suppressAndDelete } from '../../console/suppressions/change.ts'
import { suppressedOf, type SuppressionReport } from '../../console/suppressions/suppressions.ts'
import { checkUserIds } from '../../console/user-ids.ts'
import { maxUsersOfRequest } from '../../core/erasure/deletion.ts'
import { runAction } from '../context.ts'
import { usersGiven, type UserFlags } from '../deletions/given-users.ts'
import { openDeletions } from '../deletions/open-deletions.ts'
import { deletionProgress } from '../deletions/session.ts'
import { repeatable, type JsonFlag } from '../flags.ts'
import { count, print, printJson } from '../output.ts'
import { withProgress } from '../progress-bar.ts'
import { withOpen } from '../with-open.ts'
import { withSuppressions } from './session.ts'

interface Flags extends JsonFlag, UserFlags {
  source?: string[]
}

interface SuppressFlags extends Flags {
  delete?: true
}

export function suppressCommand(): Command {
  return withUsers(
    new Command('suppress')
      .summary('take and deliver no more calls of users')
      .description(
        'Suppresses users: collectors drop their calls, and forwarders skip those that came to Kafka another way, or ' +
          'wait there. Running parts follow within a second. It holds until `postrider unsuppress` ends it. At most ' +
          `${maxUsersOfRequest} users at once; a list with anything wrong in it changes nothing.`,
      ),
    'only at this source (default: at every one, also at those that are made later); can be repeated',
  )
    .option('--delete', 'then request their deletion as well, as `postrider delete-user` does')
    .option('--json', 'as JSON')
    .action(runAction(suppress))
}

export function unsuppressCommand(): Command {
  return withUsers(
    new Command('unsuppress')
      .summary('take and deliver calls of users again')
      .description(
        'Ends the suppression of users. Calls that were dropped or skipped meanwhile do not come back; calls that wait ' +
          'in a retry tier are delivered when they come due. Without --source it ends every suppression of these users.',
      ),
    'only at this source; can be repeated. Not for a user who is suppressed at every source',
  )
    .option('--json', 'as JSON')
    .action(runAction(unsuppress))
}

const withUsers = (command: Command, sourceText: string): Command =>
  command
    .argument('[id...]', 'user ids')
    .option('--file <file>', 'one user id a line; - for stdin')
    .addOption(repeatable('--source <id>', sourceText))

async function suppress(ids: string[], flags: SuppressFlags, command: Command): Promise<void> {
  const { userIds, place } = await usersGiven(ids, flags)
  // Before anything is connected: what is wrong with the list is wrong without Kafka, too.
  checkUserIds(userIds, place)
  const given = { userIds, sourceIds: flags.source ?? null }
  await withSuppressions(command, async ({ suppressions, settings, context, signal }) => {
    if (!flags.delete) {
      const report = await suppressions.suppress(given, { place })
      if (flags.json) return printJson(suppressedOf(report, null))
      return print(`${describe(report, 'suppressed')}${already(report, 'were so before')}`)
    }
    await withOpen(openDeletions(context, settings), async (deletions) => {
      const { report, deletion } = await withProgress((bar) =>
        suppressAndDelete(
          { suppressions, settings },
          given,
          () => deletions.request(given, { onProgress: deletionProgress(bar), signal, place }),
          { place },
        ),
      )
      if (flags.json) return printJson(suppressedOf(report, deletion))
      print(`${describe(report, 'suppressed')}${already(report, 'were so before')}`)
      print(
        `and erased; ${count(deletion.deleteCalls, 'delete call')} written: ` +
          `\`postrider deletions show ${deletion.requestId}\` says what became of it`,
      )
    })
  })
}

async function unsuppress(ids: string[], flags: Flags, command: Command): Promise<void> {
  const { userIds, place } = await usersGiven(ids, flags)
  checkUserIds(userIds, place)
  await withSuppressions(command, async ({ suppressions }) => {
    const report = await suppressions.unsuppress({ userIds, sourceIds: flags.source ?? null }, { place })
    if (flags.json) return printJson(suppressedOf(report, null))
    print(`${describe(report, 'not suppressed')} any more${already(report, 'were not before')}`)
  })
}

const describe = ({ users, sourceIds }: SuppressionReport, what: string): string =>
  `${count(users, 'user')} ${what} at ${sourceIds === null ? 'every source' : sourceIds.join(', ')}`

const already = ({ users, changed }: SuppressionReport, what: string): string =>
  changed === users ? '' : `; ${users - changed} of them ${what}`
