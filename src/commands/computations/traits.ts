import { Command } from 'commander'
import { createAction, deleteAction, listAction, showAction, syncAction } from './actions.ts'
import type { JsonFlag } from '../settings/settings-actions.ts'
import { listIn } from './sync-input.ts'
import { runAction } from '../context.ts'

export function traitsCommand(): Command {
  const command = new Command('traits').description(
    'Computed traits: a value for each user. Destinations of its source get an identify call when a user’s value ' +
      'changes: the trait is the name in snake_case.',
  )
  command
    .command('create')
    .summary('add a computed trait')
    .description('Adds a computed trait without values. An id is never changed or reused.')
    .requiredOption('--id <id>', '1-64 of a-z, 0-9, "_" and "-"')
    .requiredOption('--name <name>', 'for people; its snake_case form is the trait')
    .requiredOption('--source <id>', 'whose destinations are notified')
    .option('--json', 'as JSON')
    .action(runAction((flags, self: Command) => createAction('trait', flags, self)))
  command
    .command('list')
    .summary('all computed traits')
    .description('All computed traits.')
    .option('--json', 'one JSON object a line')
    .action(runAction((flags: JsonFlag, self: Command) => listAction('trait', flags, self)))
  command
    .command('show <id>')
    .summary('one computed trait, with the number of users who have a value')
    .description('One computed trait, with the number of users who have a value.')
    .option('--json', 'as JSON')
    .action(runAction((id: string, flags: JsonFlag, self: Command) => showAction('trait', id, flags, self)))
  command
    .command('sync <id> [file]')
    .summary('give the values of all users')
    .description(
      'Takes the values of all users, a line `{"userId": "…", "value": …}` each, and notifies destinations of what ' +
        'changed since the last time; who is not in the list, or has null, loses the value (null is sent). A list ' +
        'with a bad line changes nothing. If it is cut off, repeat it. The file is - or nothing for stdin.',
    )
    .option('--allow-empty', 'take an empty list: everybody loses the value')
    .option('--json', 'as JSON')
    .action(
      runAction(
        (id: string, file: string | undefined, flags: JsonFlag & { allowEmpty?: true }, self: Command) =>
          syncAction({ kind: 'trait', id, mode: 'full' }, () => listIn(file ?? '-', 'trait'), flags, self),
      ),
    )
  command
    .command('change <id> [file]')
    .summary('give the values of some users')
    .description('Takes new values as `sync` does, and leaves users who are not in the list as they are.')
    .option('--json', 'as JSON')
    .action(
      runAction((id: string, file: string | undefined, flags: JsonFlag, self: Command) =>
        syncAction({ kind: 'trait', id, mode: 'change' }, () => listIn(file ?? '-', 'trait'), flags, self),
      ),
    )
  command
    .command('delete <id>')
    .summary('delete a computed trait')
    .description('Deletes a computed trait. Its id cannot be used again.')
    .option('--notify', 'send null to every user who has a value first')
    .option('--json', 'as JSON')
    .action(
      runAction((id: string, flags: JsonFlag & { notify?: true }, self: Command) =>
        deleteAction('trait', id, flags, self),
      ),
    )
  return command
}
