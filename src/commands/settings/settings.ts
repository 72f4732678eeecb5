import { Command } from 'commander'
import { PostriderError } from '../../errors.ts'
import { runAction } from '../context.ts'
import { usageError, type JsonFlag } from '../flags.ts'
import { inSession } from '../operations/session.ts'
import { print, printJson } from '../output.ts'

export const skipCommand = (): Command =>
  new Command('skip')
    .argument('<offset>', 'in the settings log')
    .summary('Pass over an event that this version cannot read')
    .description(
      'Passes over the event at this offset of the settings log, where the settings stand still because this version ' +
        'cannot read it: errors and /readyz name the offset. Right when nobody will ever run the version that wrote it; ' +
        'otherwise upgrade. The skip is kept in the log: every process goes on at once, and each later start does so ' +
        'too. A version that can read the event still follows it. What is no settings event at all is ignored anyway.',
    )
    .option('--json', 'as JSON')
    .action(runAction(skip))

async function skip(text: string, { json }: JsonFlag, command: Command): Promise<void> {
  if (!/^\d{1,15}$/.test(text))
    throw usageError(`an offset is a whole number from 0, not ${JSON.stringify(text)}`)
  const offset = Number(text)
  await inSession(
    command,
    async ({ settings }) => {
      await settings.skip(offset)
      const { version } = settings.state
      if (json) printJson({ skipped: offset, version, heldAt: settings.heldAt })
      else print(`the event at offset ${offset} is skipped; the settings are at version ${version}`)
      if (settings.heldAt !== null) throw new PostriderError('setup', settings.problem!)
    },
    'look',
  )
}
