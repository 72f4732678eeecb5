import type { Command } from 'commander'
import { runAction } from '../context.ts'
import type { JsonFlag } from '../flags.ts'
import { computationCommand, syncAction } from './computations.ts'
import { listIn } from './sync-input.ts'

export const traitsCommand = (): Command =>
  computationCommand(
    {
      kind: 'trait',
      one: 'a computed trait',
      content: 'values',
      description:
        'Computed traits: a value for each user. Destinations of its source get an identify call when a user’s value ' +
        'changes: the trait is the name in snake_case.',
      show: {
        summary: 'one computed trait, with the number of users who have a value',
        description: 'One computed trait, with the number of users who have a value.',
      },
      sync: {
        summary: 'give the values of all users',
        description:
          'Takes the values of all users, a line `{"userId": "…", "value": …}` each, and notifies destinations of what ' +
          'changed since the last time; a user who is not in the list, or has null, loses the value (null is sent). A list ' +
          'with a bad line changes nothing. If it is cut off, repeat it. The file is - or nothing for stdin.',
        allowEmpty: 'take an empty list: everybody loses the value',
      },
      notify: 'send null to every user who has a value first',
    },
    (command) =>
      command
        .command('change <id> [file]')
        .summary('give the values of some users')
        .description('Takes new values as `sync` does, and leaves users who are not in the list as they are.')
        .option('--json', 'as JSON')
        .action(
          runAction((id: string, file: string | undefined, flags: JsonFlag, self: Command) =>
            syncAction(
              { kind: 'trait', id, mode: 'change' },
              () => listIn(file ?? '-', 'trait'),
              flags,
              self,
            ),
          ),
        ),
  )
