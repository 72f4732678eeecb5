import { Command } from 'commander'
import { MetricsPage } from '../adapters/metrics/page.ts'
import { openMonitoringServer } from '../adapters/monitoring-server.ts'
import { superviseParts } from '../supervisor.ts'
import { loadContext, runAction, settingOption, stopSignal } from './context.ts'
import { openForwarder } from './open-forwarder.ts'

export function forwarderCommand(): Command {
  return new Command('forwarder')
    .description(
      'Delivers calls to webhooks until SIGTERM: what is under way is finished and committed first. Start it as often\n' +
        'as you like, on one machine or on many: the processes share the partitions of one consumer group (GROUP_ID).',
    )
    .addOption(settingOption('METRICS_PORT'))
    .addOption(settingOption('GROUP_ID'))
    .action(
      runAction(async (_flags: unknown, command: Command) => {
        const { config, log, kafka } = loadContext(command, { longLived: true })
        const signal = stopSignal()
        const { part, counts, checks } = await openForwarder({ config, kafka: kafka(), log })
        const page = new MetricsPage()
        page.add(counts)
        const monitoring = await openMonitoringServer({ port: config.metricsPort, page, checks, log })
        await superviseParts([monitoring, part], signal)
        log.info('stopped')
      }),
    )
}
