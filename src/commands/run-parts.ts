import type { Command } from 'commander'
import type { Exposed } from '../adapters/metrics/exposition.ts'
import { MetricsPage } from '../adapters/metrics/page.ts'
import { openMonitoringServer, type ReadinessCheck } from '../adapters/monitoring-server.ts'
import { superviseParts, type Part } from '../supervisor.ts'
import { loadContext, stopSignal, type Context } from './context.ts'
import { openForwarder } from './open-forwarder.ts'

/** A part that is put together and does not run yet. */
interface OpenPart {
  part: Part
  counts: Exposed
  checks: ReadinessCheck[]
}

/** Every part that there is, by the name that commands use; each has a command of its own too. */
export const partMakers: ReadonlyMap<string, (context: Context) => Promise<OpenPart>> = new Map([
  ['forwarder', ({ config, log, kafka }) => openForwarder({ config, kafka: kafka(), log })],
])

/** Runs parts side by side in this process until it is told to stop: one log, one `/metrics`. */
export async function runParts(names: readonly string[], command: Command): Promise<void> {
  const context = loadContext(command, { longLived: true })
  const { config, log } = context
  const signal = stopSignal()
  const opened: OpenPart[] = []
  for (const name of names) opened.push(await partMakers.get(name)!(context))
  const page = new MetricsPage()
  for (const { counts } of opened) page.add(counts)
  const monitoring = await openMonitoringServer({
    port: config.metricsPort,
    page,
    checks: opened.flatMap(({ checks }) => checks),
    log,
  })
  await superviseParts([monitoring, ...opened.map(({ part }) => part)], signal)
  log.info('stopped')
}
