import { Command } from 'commander'
import { PostriderError } from '../../errors.ts'
import { createAction, deleteAction, listAction, showAction, syncAction } from './actions.ts'
import type { JsonFlag } from '../settings/settings-actions.ts'
import { changesIn, listIn } from './sync-input.ts'
import { runAction } from '../context.ts'

interface ChangeFlags extends JsonFlag {
  add?: string[]
  remove?: string[]
  addFile?: string
  removeFile?: string
}

export function audiencesCommand(): Command {
  const command = new Command('audiences').description(
    'Who is in an audience. Destinations of its source get an identify call for each user who joins or leaves: ' +
      'the trait is the audience’s name in snake_case, true or false.',
  )
  command
    .command('create')
    .summary('add an audience')
    .description('Adds an audience without members. An id is never changed or reused.')
    .requiredOption('--id <id>', '1-64 of a-z, 0-9, "_" and "-"')
    .requiredOption('--name <name>', 'for people; its snake_case form is the trait')
    .requiredOption('--source <id>', 'whose destinations are notified')
    .option('--json', 'as JSON')
    .action(runAction((flags, self: Command) => createAction('audience', flags, self)))
  command
    .command('list')
    .summary('all audiences')
    .description('All audiences.')
    .option('--json', 'one JSON object a line')
    .action(runAction((flags: JsonFlag, self: Command) => listAction('audience', flags, self)))
  command
    .command('show <id>')
    .summary('one audience, with the number of its members')
    .description('One audience, with the number of its members.')
    .option('--json', 'as JSON')
    .action(
      runAction((id: string, flags: JsonFlag, self: Command) => showAction('audience', id, flags, self)),
    )
  command
    .command('sync <id> [file]')
    .summary('give the whole list of members')
    .description(
      'Takes the whole list of members, one user id a line, and notifies destinations of who joined and left since ' +
        'the last time: everybody, the first time. A list with a bad line changes nothing. If it is cut off, ' +
        'repeat it: nobody is forgotten. The file is - or nothing for stdin.',
    )
    .option('--allow-empty', 'take an empty list: everybody leaves')
    .option('--json', 'as JSON')
    .action(
      runAction(
        (id: string, file: string | undefined, flags: JsonFlag & { allowEmpty?: true }, self: Command) =>
          syncAction(
            { kind: 'audience', id, mode: 'full' },
            () => listIn(file ?? '-', 'audience'),
            flags,
            self,
          ),
      ),
    )
  command
    .command('change <id>')
    .summary('add and remove members')
    .description('Adds and removes members and leaves the others as they are. One file may be - for stdin.')
    .option('--add <user...>', 'user ids')
    .option('--remove <user...>', 'user ids')
    .option('--add-file <file>', 'one user id a line')
    .option('--remove-file <file>', 'one user id a line')
    .option('--json', 'as JSON')
    .action(runAction(change))
  command
    .command('delete <id>')
    .summary('delete an audience')
    .description('Deletes an audience. Its id cannot be used again.')
    .option('--notify', 'notify destinations first that every member left')
    .option('--json', 'as JSON')
    .action(
      runAction((id: string, flags: JsonFlag & { notify?: true }, self: Command) =>
        deleteAction('audience', id, flags, self),
      ),
    )
  return command
}

async function change(id: string, flags: ChangeFlags, self: Command): Promise<void> {
  const { add = [], remove = [], addFile, removeFile } = flags
  if (add.length + remove.length === 0 && addFile === undefined && removeFile === undefined)
    throw new PostriderError('usage', 'nobody is named: give --add, --remove, --add-file or --remove-file')
  if (addFile === '-' && removeFile === '-')
    throw new PostriderError('usage', 'only one of --add-file and --remove-file can be stdin')
  await syncAction(
    { kind: 'audience', id, mode: 'change' },
    () => changesIn({ add, remove, addFile, removeFile }),
    flags,
    self,
  )
}
