import { Command } from 'commander'
import { rotateSecrets } from '../console/secrets-rotation.ts'
import { PostriderError } from '../errors.ts'
import { runAction } from './context.ts'
import type { JsonFlag } from './flags.ts'
import { count, print, printJson, printTable } from './output.ts'
import { withSettings } from './settings/with-settings.ts'

interface RotateFlags extends JsonFlag {
  dryRun?: boolean
}

export function secretsCommand(): Command {
  const command = new Command('secrets').description(
    'Shared secrets and header values as they lie in the settings: encrypted under SECRETS_KEY.',
  )
  command
    .command('rotate')
    .summary('encrypt all again under the first key of SECRETS_KEY')
    .description(
      'Encrypts every shared secret and header value again under the first key of SECRETS_KEY. To change the key: ' +
        'set SECRETS_KEY to "new,old" for every process and restart them; run this; then take the old key out. ' +
        'Interrupted, it goes on where it was when it is run again. Fingerprints are made with the key, so they ' +
        'change with it.',
    )
    .option('--dry-run', 'say how many it would be, and change nothing')
    .option('--json', 'as JSON')
    .action(runAction(rotate))
  return command
}

async function rotate({ dryRun = false, json }: RotateFlags, command: Command) {
  await withSettings(command, async (settings, { secrets }) => {
    const { keyId, rotated, destinations } = await rotateSecrets(settings, secrets, { dryRun })
    const touched = destinations.filter((destination) => destination.rotated > 0)
    const problems = destinations.flatMap(({ id, problems }) =>
      problems.map((problem) => `destination "${id}": ${problem}`),
    )
    if (json) printJson({ dryRun, rotated, keyId, destinations })
    else {
      if (touched.length > 0)
        printTable(
          ['DESTINATION', dryRun ? 'TO ROTATE' : 'ROTATED', 'WERE CURRENT'],
          touched.map(({ id, rotated, current }) => [id, rotated, current]),
        )
      print(sentence(rotated, keyId, dryRun, problems.length === 0))
    }
    if (problems.length > 0)
      throw new PostriderError('secrets_key', `not all could be encrypted again: ${problems.join('; ')}`)
  })
}

function sentence(rotated: number, keyId: string, dryRun: boolean, isAll: boolean): string {
  const counted = count(rotated, 'secret')
  if (dryRun) return `${counted} would be encrypted again under key ${keyId}`
  const done = `${counted} encrypted again under key ${keyId}`
  return isAll ? `${done}; older keys are needed no longer: take them out of SECRETS_KEY` : done
}
