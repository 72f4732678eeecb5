import { chmod, mkdir, rename, writeFile } from 'node:fs/promises'
import { relative, dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { Command, Option } from 'commander'
import { LogCounts } from '../../adapters/metrics/log-counts.ts'
import { MetricsPage } from '../../adapters/metrics/page.ts'
import { ProduceDurations } from '../../adapters/metrics/produce-durations.ts'
import { openMonitoringServer, type ReadinessCheck } from '../../adapters/monitoring-server.ts'
import type { Config } from '../../config/config.ts'
import { checkoutOf, devEnvFile, readDevEnv } from '../../config/dev-env.ts'
import type { Environment } from '../../config/read-environment.ts'
import { openConsole } from '../open-console.ts'
import { LoginCode, loginMinutes } from '../../console/page/session.ts'
import { topicNames } from '../../core/topics.ts'
import { asPart } from '../../local/java-server.ts'
import { superviseParts, type Part } from '../../supervisor.ts'
import { loadContext, runAction, settingOption, type Context } from '../context.ts'
import { usageError } from '../flags.ts'
import { io, stopSignal } from '../io.ts'
import { openCollector } from '../open-collector.ts'
import { openForwarder } from '../open-forwarder.ts'
import { openReports } from '../process-reports.ts'
import { processMetrics } from '../run-parts.ts'
import { runSetup } from '../setup.ts'
import { print, printable } from '../terminal.ts'
import { Arrivals, prepareDemo } from './demo-parts.ts'
import { demoId } from './demo.ts'
import { sendSamples } from './samples.ts'
import { localServers, portOf, type LocalServerFlags, startServers } from './servers.ts'
import { devDefaults, leaveForOthers } from './settings.ts'
import { endTraffic, prepareTraffic, trafficLine } from './traffic.ts'

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
  const state = new DevState(io().cwd)
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
    const isQuiet = flags.demoTraffic === true && !io().env.LOG_LEVEL
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

const heading = `# Written by \`postrider dev\`; other commands in this checkout read it. SECRETS_KEY opens the secrets that lie in
# this Kafka: without it they are lost.
`

/** The folder where \`dev\` keeps everything, and its dev.env: what the last run left, and what this one leaves. */
export class DevState {
  /** `.postrider` of the checkout. */
  readonly folder: string
  readonly #file: string
  #values: Environment

  /** Throws PostriderError 'usage' outside of a checkout: other commands would not find what is left there. */
  constructor(cwd: string) {
    const checkout = checkoutOf(cwd)
    if (checkout === null)
      throw usageError(
        `${cwd} does not lie in a checkout of Postrider, where \`dev\` keeps its state; elsewhere, use \`setup\` and \`forwarder\` with a Kafka of your own`,
      )
    this.#file = devEnvFile(checkout)
    this.folder = dirname(this.#file)
    this.#values = readDevEnv(cwd)
  }

  get(name: string): string | null {
    return this.#values[name] || null
  }

  /** Sets these and keeps the others; null takes one away. Only this user may read the file. */
  async set(changes: Record<string, string | null>): Promise<void> {
    const values = { ...this.#values, ...changes }
    this.#values = Object.fromEntries(Object.entries(values).filter(([, value]) => value)) as Environment
    const lines = Object.entries(this.#values).map(([name, value]) => `${name}=${quoted(value!)}\n`)
    // All calls of this Kafka lie below, whatever the modes of the files that Kafka makes.
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    await chmod(this.folder, 0o700)
    const partial = `${this.#file}.partial`
    await writeFile(partial, heading + lines.join(''), { mode: 0o600 })
    await rename(partial, this.#file)
  }
}

/** As Node's `parseEnv` reads it back: it knows three quotes, and no escape. */
function quoted(value: string): string {
  if (/^[\w.,:/-]*$/.test(value)) return value
  const quote = ["'", '"', '`'].find((mark) => !value.includes(mark)) ?? "'"
  return quote + value + quote
}

export interface Places {
  collectorUrl: string
  consoleUrl: string
  /** Logs a browser in, once. */
  loginUrl: string
  /** Of the demo's source. Not secret: browsers publish such keys. */
  writeKey: string
  metricsPort: number
  receiverUrl: string
}

/** What to type next, to be copied as it stands. */
export function sayNext(screen: Screen, config: Config, places: Places): void {
  const { collectorUrl, consoleUrl, loginUrl, metricsPort, receiverUrl } = places
  // A key that the user has chosen may have characters that a shell takes for its own.
  const writeKey = /^[\w.-]+$/.test(places.writeKey) ? places.writeKey : 'WRITE_KEY'
  const { calls } = topicNames(config.topicPrefix)
  screen.say(`
Open the console in a browser; this link logs in once, within ${loginMinutes} minutes:

  ${loginUrl}

Later, log in at ${consoleUrl} with ADMIN_TOKEN of .postrider/dev.env; the next start prints another link.

In a second terminal, in this folder:

  # a call of your own, over HTTP: into ${calls}, out to ${receiverUrl}
  curl ${collectorUrl}/v1/track -u ${writeKey}: -d '{"userId":"me","event":"Hello","properties":{"n":1}}'

  # one by the client library; \`npx postrider sources show ${demoId}\` prints the write key
  npx node --input-type=module -e "
    import { Analytics } from 'postrider'
    const analytics = new Analytics('${writeKey}', { endpoint: '${collectorUrl}' })
    analytics.track({ userId: 'me', event: 'Hello from Node' })
    await analytics.close()
  "

  # one straight into Kafka
  echo '{"type":"track","userId":"me","event":"Hello"}' | npx postrider produce --source ${demoId}

  # where calls come from and go to; a destination of your own
  npx postrider sources list
  npx postrider destinations list
  npx postrider destinations create --help

  # the same over HTTP; the token lies in .postrider/dev.env, unless you have set ADMIN_TOKEN
  export ADMIN_TOKEN=$(sed -n 's/^ADMIN_TOKEN=//p' .postrider/dev.env)
  curl -s ${consoleUrl}/api/v1/destinations -H "Authorization: Bearer $ADMIN_TOKEN"

  # what is going on
  curl -s http://localhost:${metricsPort}/metrics | grep postrider_deliveries_total
  npx postrider dead-letters list

What arrives at the demo’s receiver is shown here. Ctrl-C ends everything.
`)
}

const labelWidth = 12

/** What `dev` says to the person at the terminal, on stdout. */
export class Screen {
  readonly #stream = io().stdout
  #hasProgress = false

  /** A line of its own. Control characters do not reach the terminal. */
  say(text = ''): void {
    this.#clear()
    print(text.split('\n').map(printable).join('\n'))
  }

  /** One thing that is ready: what, and where. */
  ready(label: string, text: string): void {
    this.say(`  ${label.padEnd(labelWidth)}${text}`)
  }

  /** In a terminal, one line that is written over and over until the next one that stays. */
  progress(label: string, text: string): void {
    if (!this.#stream.isTTY) return
    const line = `  ${label.padEnd(labelWidth)}${printable(text)}`
    this.#stream.write(`\r\u001b[K${line.slice(0, (this.#stream.columns ?? 80) - 1)}`)
    this.#hasProgress = true
  }

  #clear(): void {
    if (this.#hasProgress) this.#stream.write('\r\u001b[K')
    this.#hasProgress = false
  }
}
