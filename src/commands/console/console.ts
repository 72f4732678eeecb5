import { Command } from 'commander'
import { runAction, settingOption } from '../context.ts'
import { runParts } from '../run-parts.ts'

export function consoleCommand(): Command {
  return new Command('console')
    .description(
      'Serves the admin API until SIGTERM: requests in flight are finished first. It needs ADMIN_TOKEN, which every\n' +
        'request has to carry, and speaks plain HTTP: run it behind a TLS-terminating proxy. It listens for this\n' +
        'machine only, unless CONSOLE_HOST is set. Several can run at once.\n' +
        'What it can do is at /api/v1/openapi.json.',
    )
    .addOption(settingOption('CONSOLE_PORT'))
    .addOption(settingOption('METRICS_PORT'))
    .addOption(settingOption('GROUP_ID'))
    .action(runAction((_flags: unknown, command: Command) => runParts(['console'], command)))
}
