import { Command } from 'commander'
import { runAction, settingOption } from '../context.ts'
import { runParts } from '../run-parts.ts'

export function forwarderCommand(): Command {
  return new Command('forwarder')
    .description(
      'Delivers calls to webhooks until SIGTERM: what is in flight is finished and committed first. Start it as often\n' +
        'as you like, on one machine or on many: the processes share the partitions of one consumer group (GROUP_ID).',
    )
    .addOption(settingOption('METRICS_PORT'))
    .addOption(settingOption('GROUP_ID'))
    .action(runAction((_flags: unknown, command: Command) => runParts(['forwarder'], command)))
}
