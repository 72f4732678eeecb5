import type { Command } from 'commander'
import { runAction } from '../context.ts'
import { usageError, type JsonFlag } from '../flags.ts'
import { computationCommand, syncAction } from './computations.ts'
import { changesIn } from './sync-input.ts'

export const audiencesCommand = (): Command =>
  computationCommand(
    {
      kind: 'audience',
      one: 'an audience',
      content: 'members',
      description:
        'Who is in an audience. Destinations of its source get an identify call for each user who joins or leaves: ' +
        'the trait is the audience’s name in snake_case, true or false.',
      show: {
        summary: 'one audience, with the number of its members',
        description: 'One audience, with the number of its members.',
      },
      sync: {
        summary: 'give the whole list of members',
        description:
          'Takes the whole list of members, one user id a line, and notifies destinations of who joined and left since ' +
          'the last time: everybody, the first time. A list with a bad line changes nothing. If it is cut off, ' +
          'repeat it: nobody is forgotten. The file is - or nothing for stdin.',
        allowEmpty: 'take an empty list: everybody leaves',
      },
      notify: 'notify destinations first that every member left',
    },
    (command) =>
      command
        .command('change <id>')
        .summary('add and remove members')
        .description(
          'Adds and removes members and leaves the others as they are. One file may be - for stdin.',
        )
        .option('--add <user...>', 'user ids')
        .option('--remove <user...>', 'user ids')
        .option('--add-file <file>', 'one user id a line')
        .option('--remove-file <file>', 'one user id a line')
        .option('--json', 'as JSON')
        .action(runAction(change)),
  )

interface ChangeFlags extends JsonFlag {
  add?: string[]
  remove?: string[]
  addFile?: string
  removeFile?: string
}

async function change(id: string, flags: ChangeFlags, self: Command): Promise<void> {
  const { add = [], remove = [], addFile, removeFile } = flags
  if (add.length + remove.length === 0 && addFile === undefined && removeFile === undefined)
    throw usageError('nobody is named: give --add, --remove, --add-file or --remove-file')
  if (addFile === '-' && removeFile === '-')
    throw usageError('only one of --add-file and --remove-file can be stdin')
  await syncAction(
    { kind: 'audience', id, mode: 'change' },
    () => changesIn({ add, remove, addFile, removeFile }),
    flags,
    self,
  )
}
