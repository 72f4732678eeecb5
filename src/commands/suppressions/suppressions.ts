import { Command } from 'commander'
import { itemOf } from '../../console/suppressions/suppressions.ts'
import { runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { print, printable, printJson } from '../output.ts'
import { withSuppressions } from './session.ts'

export function suppressionsCommand(): Command {
  const command = new Command('suppressions').description(
    'Users whose calls are neither taken nor delivered: `postrider suppress` and `postrider unsuppress` change that.',
  )
  command
    .command('list')
    .summary('all suppressed users')
    .description('All suppressed users, the newest last: the user, the source, and since when.')
    .option('--user <id>', 'only this user')
    .option('--json', 'one JSON object a line')
    .action(runAction(list))
  return command
}

async function list({ user, json }: JsonFlag & { user?: string }, command: Command): Promise<void> {
  await withSuppressions(command, async ({ suppressions, signal }) => {
    let isEmpty = true
    // Line by line: there may be millions.
    for await (const item of suppressions.all(user ?? null, signal)) {
      isEmpty = false
      const { userId, sourceId, since } = itemOf(item)
      if (json) printJson({ userId, sourceId, since })
      else print(`${since}  ${sourceId ?? 'every source'}  ${printable(userId)}`)
    }
    if (isEmpty && !json)
      print(user === undefined ? 'no user is suppressed' : `user ${printable(user)} is not suppressed`)
  })
}
