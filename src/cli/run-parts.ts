import type { Command } from 'commander'
import type { Exposed } from '../adapters/metrics/exposition.ts'
import { LogCounts } from '../adapters/metrics/log-counts.ts'
import { ProcessMetrics } from '../adapters/metrics/process-metrics.ts'
import { MetricsPage } from '../adapters/metrics/page.ts'
import { ProduceDurations } from '../adapters/metrics/produce-durations.ts'
import { requirePermissions } from '../adapters/kafka/secure/require-permissions.ts'
import { openMonitoringServer } from '../adapters/monitoring-server.ts'
import { partPermissions } from '../core/permissions.ts'
import { PostriderError } from '../errors.ts'
import { superviseParts } from '../supervisor.ts'
import { deploymentNames } from './check-start.ts'
import { loadContext, type Context } from './context.ts'
import { io, stopSignal } from './io.ts'
import { openCollector } from './open-collector.ts'
import { openConsole } from './open-console.ts'
import { openForwarder } from './open-forwarder.ts'
import type { OpenPart } from './part-lives.ts'
import { openReports } from './process-reports.ts'
import { version } from '../version.ts'

interface SharedCounts {
  produceDurations: ProduceDurations
  logCounts: LogCounts
}

/** Every part that there is, by the name that commands use; each has a command of its own too. */
export const partMakers = {
  collector: openCollector,
  forwarder: openForwarder,
  console: openConsole,
} satisfies Record<string, (given: Context & SharedCounts) => OpenPart<Exposed>>

export type PartName = keyof typeof partMakers

/**
 * How long a stop may take in all. What it waits for has limits of its own, but for Kafka's answers when members leave
 * and connections are closed. Orchestrators kill after 30 s by default.
 */
const stopWithinMs = 15_000

/** Runs parts side by side in this process until a signal stops it: one log, one `/metrics`. */
export async function runParts(names: readonly PartName[], command: Command): Promise<void> {
  const context = loadContext(command, { longLived: true })
  const { config, log } = context
  const signal = stopSignal()
  const { ownsProcess } = io()
  const shared: SharedCounts = { produceDurations: new ProduceDurations(), logCounts: new LogCounts() }
  const opened = names.map((name): OpenPart<Exposed> => partMakers[name]({ ...context, ...shared }))
  const page = new MetricsPage()
  page.add(processMetrics(context, opened))
  page.add(shared.produceDurations)
  page.add(shared.logCounts)
  for (const { counts } of opened) page.add(counts)
  const monitoring = await openMonitoringServer({
    port: config.metricsPort,
    host: config.metricsHost,
    page,
    checks: opened.flatMap(({ checks }) => checks),
    log,
  })
  signal.addEventListener('abort', () => {
    const end = () => {
      log.error(
        `not stopped within ${stopWithinMs / 1_000} s, so ended: what Kafka has not acknowledged as committed is sent again`,
      )
      if (ownsProcess) process.exit(1)
    }
    setTimeout(end, stopWithinMs).unref()
  })
  const reports = openReports(
    context,
    opened.map(({ report }) => report),
  )
  try {
    await superviseParts([monitoring, reports, ...opened.map(({ part }) => part)], signal)
  } catch (error) {
    if (error instanceof PostriderError && error.code === 'setup') await requireAll(names, context)
    throw error
  }
  log.info('stopped')
}

/** The part that failed first names what it lacks itself: this names what any of them does. */
async function requireAll(names: readonly PartName[], { kafka, config, log }: Context): Promise<void> {
  const needs = names.flatMap((name) => partPermissions(name, deploymentNames(config)))
  const distinct = new Map(needs.map((each) => [JSON.stringify(each), each]))
  await requirePermissions(kafka, [...distinct.values()], log)
}

/** What the page of a process says of the parts that run in it. */
export const processMetrics = (
  { config }: Pick<Context, 'config'>,
  parts: readonly Pick<OpenPart<Exposed>, 'checks' | 'restarts' | 'report'>[],
): ProcessMetrics =>
  new ProcessMetrics({
    version,
    topicPrefix: config.topicPrefix,
    groupId: config.groupId,
    parts: parts.map(({ checks, restarts, report }) => ({
      name: report.role,
      isReady: () => checks.every((check) => check.problem() === null),
      restarts,
      settingsVersion: () => report.settingsVersion?.() ?? 0,
    })),
  })
