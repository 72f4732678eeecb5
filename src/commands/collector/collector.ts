import { Command } from 'commander'
import { runAction, settingOption } from '../context.ts'
import { runParts } from '../run-parts.ts'

export function collectorCommand(): Command {
  return new Command('collector')
    .description(
      'Takes calls over HTTP (POST /v1/batch and the other routes of the tracking API) until SIGTERM: requests under\n' +
        'way are answered first. A call is acknowledged once Kafka has it. Start it as often as you like, behind any\n' +
        'load balancer: each one knows the retries of its own calls.',
    )
    .addOption(settingOption('COLLECTOR_PORT'))
    .addOption(settingOption('METRICS_PORT'))
    .addOption(settingOption('GROUP_ID'))
    .action(runAction((_flags: unknown, command: Command) => runParts(['collector'], command)))
}
