import { relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { LoginCode } from '../../console/page/session.ts'
import { LogCounts } from '../../adapters/metrics/log-counts.ts'
import { MetricsPage } from '../../adapters/metrics/page.ts'
import { ProduceDurations } from '../../adapters/metrics/produce-durations.ts'
import { openMonitoringServer, type ReadinessCheck } from '../../adapters/monitoring-server.ts'
import { asPart } from '../../local/java-server.ts'
import { superviseParts, type Part } from '../../supervisor.ts'
import { loadContext, runAction, settingOption, stopSignal, type Context } from '../context.ts'
import { Arrivals } from './arrivals.ts'
import { prepareDemo } from './demo-parts.ts'
import { DevState } from './dev-state.ts'
import { sayNext } from './next-steps.ts'
import { sendSamples } from './samples.ts'
import { Screen } from './screen.ts'
import { localServers, portOf, type LocalServerFlags } from './server-ports.ts'
import { startServers } from './servers.ts'
import { devDefaults, leaveForOthers } from './settings.ts'
import { endTraffic, prepareTraffic, trafficLine } from './traffic.ts'
import { openCollector } from '../collector/open-collector.ts'
import { openConsole } from '../../console/open-console.ts'
import { openForwarder } from '../forwarder/open-forwarder.ts'
import { openReports } from '../reports/open-reports.ts'
import { processMetrics } from '../run-parts.ts'
import { runSetup } from '../setup/setup.ts'

interface DevFlags extends LocalServerFlags {
  receiverPort?: string
  demoTraffic?: true
}

export function devCommand(): Command {
  return new Command('dev')
    .description(
      'What `npm start` runs: a real Kafka and schema registry as child processes, topics and schemas, the ' +
        'collector, the forwarder, the console, and a demo (source, destination, receiver). The first run sends sample calls. ' +
        'Everything is kept in .postrider/ between runs; Ctrl-C ends everything.\n\n' +
        'With KAFKA_BROKERS set, that Kafka and the registry at SCHEMA_REGISTRY_URL are used instead.',
    )
    .addOption(
      new Option(
        '--brokers <count>',
        'Brokers of the local Kafka: 1, or 3 that hold a copy of every record each, as on a production cluster; they ' +
          'take about 1.1 GB of memory (default: as in the run before, at first 1).',
      ).env('DEV_BROKERS'),
    )
    .addOption(
      portOption(
        '--kafka-port',
        'the local Kafka; three brokers take the next two ports as well',
        'DEV_KAFKA_PORT',
      ).default('9092'),
    )
    .addOption(
      portOption('--registry-port', 'the local schema registry', 'DEV_REGISTRY_PORT').default('8081'),
    )
    .addOption(
      portOption(
        '--receiver-port',
        'the demo’s receiver (default: that of the run before)',
        'DEV_RECEIVER_PORT',
      ),
    )
    .option(
      '--demo-traffic',
      'Send calls of a few people, to a healthy, a slow and a failing destination, so that the console has something ' +
        'to show. Off unless given.',
    )
    .addOption(settingOption('COLLECTOR_PORT'))
    .addOption(settingOption('CONSOLE_PORT'))
    .addOption(settingOption('METRICS_PORT'))
    .action(runAction((_flags: unknown, command: Command) => dev(command)))
}

/** Servers for development listen on the loopback interface only. */
const ownHost = '127.0.0.1'

const portOption = (flag: string, whose: string, variable: string): Option =>
  new Option(`${flag} <port>`, `The port of ${whose}.`).env(variable)

async function dev(command: Command): Promise<void> {
  const signal = stopSignal()
  const flags = command.optsWithGlobals<DevFlags>()
  const state = new DevState(process.cwd())
  const local = localServers(flags, state.folder)
  const receiverPort = flags.receiverPort === undefined ? null : portOf('--receiver-port', flags.receiverPort)
  const defaults = devDefaults(state, local)
  const context = loadContext(command, { devEnv: defaults })
  const screen = new Screen()
  screen.say(
    `Postrider, to try out and develop with${local && local.kafka.length > 1 ? ', on three brokers (about 1.1 GB of memory)' : ''}. ` +
      `State: ${relative('', state.folder)}/. Ctrl-C ends.\n`,
  )
  if (flags.demoTraffic) screen.say(trafficLine)
  // What is open and does not run as a part yet; closing again what a part has closed does nothing.
  const closers: (() => Promise<unknown>)[] = []
  try {
    const parts: Part[] = []
    if (local) {
      const { folder } = state
      const { kafka, registry } = await startServers({ folder, ports: local, screen, signal })
      closers.push(() => Promise.all([kafka.stop(), registry.stop()]))
      parts.push(asPart(kafka), asPart(registry))
    } else {
      screen.ready('Kafka', `${context.config.kafka.brokers.join()}, not started here`)
      screen.ready('registry', `${context.config.registry.url}, not started here`)
    }
    await leaveForOthers(state, context.config, defaults)
    await ensureSetup(context, screen)
    signal.throwIfAborted()
    const arrivals = new Arrivals(screen)
    const demo = await prepareDemo(context, state, { port: receiverPort, arrivals, local: local !== null })
    closers.push(demo.close)
    for (const line of demo.warnings) screen.say(`  note: ${line}`)
    const produceDurations = new ProduceDurations()
    const logCounts = new LogCounts()
    const shared = { ...context, produceDurations, logCounts }
    // What the traffic's failing destination refuses would fill the terminal.
    const isQuiet = flags.demoTraffic === true && !process.env.LOG_LEVEL
    const forwarderLog = isQuiet ? context.log.child({}, { level: 'error' }) : context.log
    const forwarder = openForwarder({ ...shared, log: forwarderLog })
    const collector = openCollector({ ...shared, host: ownHost })
    const collecting = Promise.withResolvers<string>()
    const traffic = flags.demoTraffic
      ? await prepareTraffic(context, state, screen, collecting.promise)
      : await endTraffic(context, state)
    if (traffic) closers.push(traffic.close)
    const loginCode = new LoginCode(Date.now())
    const console = openConsole({ ...shared, host: ownHost, loginCode })
    const page = new MetricsPage()
    page.add(processMetrics(context, [collector, forwarder, console]))
    for (const counts of [produceDurations, logCounts, collector.counts, forwarder.counts, console.counts])
      page.add(counts)
    const monitoring = await openMonitoringServer({
      port: context.config.metricsPort,
      host: ownHost,
      page,
      checks: [...collector.checks, ...forwarder.checks, ...console.checks],
      log: context.log,
    })
    closers.push(monitoring.close)
    screen.ready('receiver', demo.url)
    screen.ready('metrics', `http://localhost:${monitoring.port}/metrics`)
    const reports = openReports(context, [forwarder.report, collector.report, console.report])
    parts.push(monitoring, demo.part, reports, forwarder.part, collector.part, console.part)
    // The last to start, and the first to stop.
    if (traffic) parts.push(traffic.part)
    await runAll(parts, signal, screen, async (stopping) => {
      screen.progress('forwarder', 'joining its group')
      await readiness(forwarder.checks, stopping)
      screen.ready('forwarder', `ready, as group ${context.config.groupId}`)
      await readiness(collector.checks, stopping)
      const collectorUrl = `http://${ownHost}:${await collector.listening}`
      screen.ready('collector', collectorUrl)
      collecting.resolve(collectorUrl)
      await readiness(console.checks, stopping)
      const consoleUrl = `http://${ownHost}:${await console.listening}`
      screen.ready('console', consoleUrl)
      if (state.get('DEV_SAMPLES') === null) {
        await sendSamples(context, arrivals, screen, stopping)
        await state.set({ DEV_SAMPLES: 'sent' })
      }
      sayNext(screen, context.config, {
        collectorUrl,
        consoleUrl,
        loginUrl: `${consoleUrl}/login#code=${loginCode.text}`,
        writeKey: demo.writeKey,
        metricsPort: monitoring.port,
        receiverUrl: demo.url,
      })
    })
    screen.say(
      `Stopped. What was kept is in ${relative('', state.folder)}/; the next run goes on from there.`,
    )
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    for (const close of closers.reverse()) await close()
  }
}

async function ensureSetup({ config, log }: Context, screen: Screen): Promise<void> {
  screen.progress('topics', 'looking')
  const { topics, subjects, problems } = await runSetup(config, log)
  const created = (reports: readonly { result: string }[]) =>
    reports.filter(({ result }) => result !== 'present').length
  const counted = (what: string, reports: readonly { result: string }[]) =>
    created(reports) > 0 ? `${created(reports)} ${what} created` : `${reports.length} ${what} in place`
  screen.ready('setup', `${counted('topics', topics)}, ${counted('schemas', subjects)}`)
  for (const { message } of problems) screen.say(`  note: ${message}`)
}

/** Runs the parts until the signal; `beside` runs with them, and ends them when it fails. */
async function runAll(
  parts: readonly Part[],
  signal: AbortSignal,
  screen: Screen,
  beside: (stopping: AbortSignal) => Promise<void>,
): Promise<void> {
  const failed = new AbortController()
  const stopping = AbortSignal.any([signal, failed.signal])
  signal.addEventListener('abort', () => screen.say('\nStopping: what is in flight is finished first.'))
  const ended = new AbortController()
  const running = superviseParts(parts, stopping).finally(() => ended.abort())
  const reporting = beside(AbortSignal.any([stopping, ended.signal])).catch((error: unknown) => {
    failed.abort()
    if (!signal.aborted && !ended.signal.aborted) throw error
  })
  await Promise.all([running, reporting])
}

async function readiness(checks: readonly ReadinessCheck[], signal: AbortSignal): Promise<void> {
  while (checks.some(({ problem }) => problem() !== null)) await sleep(50, undefined, { signal })
}
