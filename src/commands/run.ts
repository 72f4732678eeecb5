import { Command } from 'commander'
import { PostriderError } from '../errors.ts'
import { runAction, settingOption } from './context.ts'
import { partMakers, runParts } from './run-parts.ts'

const known = [...partMakers.keys()].join(', ')

export function runCommand(): Command {
  return new Command('run')
    .description(
      'Runs several parts in one process until SIGTERM, with one log and one /metrics. They start in the order\n' +
        `given and stop in the reverse one. Parts: ${known}.`,
    )
    .argument('<part...>', `one or several of: ${known}`)
    .addOption(settingOption('METRICS_PORT'))
    .addOption(settingOption('GROUP_ID'))
    .action(
      runAction(async (parts: string[], _flags: unknown, command: Command) => {
        checkParts(parts)
        await runParts(parts, command)
      }),
    )
}

function checkParts(parts: readonly string[]): void {
  const unknown = parts.filter((name) => !partMakers.has(name))
  if (unknown.length > 0)
    throw new PostriderError(
      'usage',
      `there is no part ${unknown.map((name) => JSON.stringify(name)).join(' or ')}; there is: ${known}`,
    )
  const twice = parts.find((name, at) => parts.indexOf(name) !== at)
  if (twice !== undefined)
    throw new PostriderError(
      'usage',
      `${twice} is named twice; for more of one part, start more processes (\`postrider ${twice}\`)`,
    )
}
