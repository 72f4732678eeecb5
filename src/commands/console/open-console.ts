import { boundHeap } from '../../adapters/bound-heap.ts'
import { endPauses } from '../../adapters/folded-log/pause-ends.ts'
import { openConsoleServer } from '../../adapters/http/console-server.ts'
import type { LoginCode } from '../../adapters/http/page/login-code.ts'
import { urlAt } from '../../adapters/http/serving.ts'
import { heldKeptMs } from '../../adapters/kafka/admin/held-retention.ts'
import { markForCompaction, type MarkTimes } from '../../adapters/kafka/write/compaction-marks.ts'
import { ConsoleCounts } from '../../adapters/metrics/console-metrics.ts'
import { OpenTransactions } from '../../adapters/kafka/open-transactions.ts'
import type { LogCounts } from '../../adapters/metrics/log-counts.ts'
import type { Statistics } from '../../adapters/store/statistics/statistics-follower.ts'
import { createSecrets } from '../../adapters/secrets.ts'
import { readChanges } from '../../adapters/folded-log/settings-history.ts'
import { sendSample } from '../../adapters/webhook/sample-call.ts'
import { currentActor } from '../../console/acting-as.ts'
import { operations } from '../../console/api/operations.ts'
import { runAudits } from '../../console/audit/audit-schedule.ts'
import type { ConsoleServices } from '../../console/api/services.ts'
import { partActor } from '../settings/actor.ts'
import { because, checkStart } from '../check-start.ts'
import type { Context } from '../context.ts'
import { deploymentOf, erasuresOf, settingsHistoryOf, settingsOf, suppressionsOf } from '../deployment.ts'
import { transportOf } from '../../adapters/webhook/transport.ts'
import { listeningPart, PartLives, untilAborted, type Life, type ListeningPart } from '../part-lives.ts'
import type { OperationalTimes } from '../../console/operational/emit-events.ts'
import { openLiveTail } from '../tail/open-live-tail.ts'
import { runOperationalEvents } from '../operational/open-events.ts'
import { openComputations, type OpenComputations } from '../computations/open-computations.ts'
import { openInfrastructure } from '../infrastructure/open-infrastructure.ts'
import { openAudits } from '../audit/open-audits.ts'
import { openDeadLetters } from '../dead-letters/open-dead-letters.ts'
import { openDeletions } from '../deletions/open-deletions.ts'
import { openSuppressions } from '../suppressions/open-suppressions.ts'
import { openMessages, type OpenMessages } from '../why/open-messages.ts'
import { openStatistics } from '../statistics/open-statistics.ts'
import { replaysOf } from '../../console/replays/replays.ts'
import { ReplayRunner } from '../../console/replays/replay-runner.ts'
import { openReplays } from '../replays/open-replays.ts'
import { usageError } from '../flags.ts'
import { version } from '../../version.ts'

export interface OpenConsoleOptions extends Context {
  logCounts?: LogCounts
  /** CONSOLE_HOST unless given. */
  host?: string
  /** How operational events are sent; null for a console that sends none. */
  operationalEvents?: Partial<OperationalTimes> | null
  /** When compacted topics are marked; within an hour and then daily unless given. */
  compactionMarks?: MarkTimes
  /** Logs a browser in once. */
  loginCode?: LoginCode
}

/** V8's space for young objects: `boundHeap`. The console folds millions of ledger records at its first start. */
const youngMb = 32

/**
 * The console as a part. It listens from its start to its end; behind that, it restarts while Kafka or the
 * registry is away and, a bounded number of times, after a bug. Throws `usage` without ADMIN_TOKEN. Its run rejects
 * with `local` for a port that is taken, and with `setup` where topics or schemas are missing.
 */
export function openConsole(options: OpenConsoleOptions): ListeningPart<ConsoleCounts> {
  boundHeap(youngMb)
  const { config, log } = options
  const { adminToken } = config
  const host = options.host ?? config.consoleHost
  if (adminToken === null)
    throw usageError(
      'ADMIN_TOKEN is not set, and the console lets nobody in without one: set it to a long random text (openssl rand -hex 32)',
    )
  const counts = new ConsoleCounts()
  const lives = new PartLives('console', log, () => assemble(options))
  counts.auditIntervalMs = config.auditIntervalMs
  counts.audit = () => lives.ready?.audits.outcome ?? null
  const listen = () =>
    openConsoleServer({
      port: config.consolePort,
      host,
      token: adminToken,
      version,
      loginCode: options.loginCode ?? null,
      operations,
      services: () => lives.ready,
      counts,
      log,
    })
  return {
    counts,
    checks: lives.checks,
    restarts: lives.restarts,
    report: {
      role: 'console',
      settingsVersion: () => lives.ready?.settings.state.version ?? 0,
    },
    ...listeningPart(lives.part, listen, (port) =>
      log.info(
        { host, port },
        `admin API at ${urlAt(host, port)}/api/v1/openapi.json, the page at ${urlAt(host, port)}`,
      ),
    ),
  }
}

/** Where nothing else is said, they run on this machine, at the port that both are given. */
const collectorUrlOf = ({ collectorUrl, collectorPort }: OpenConsoleOptions['config']): string | null =>
  collectorUrl ?? (collectorPort === 0 ? null : `http://localhost:${collectorPort}`)

async function assemble(options: OpenConsoleOptions): Promise<Life<ConsoleServices>> {
  const deployment = deploymentOf(options)
  const { config, kafka, log, topics, codecs } = deployment
  const secrets = createSecrets(config.secretsKeys)
  const transactions = new OpenTransactions()
  const actor = () => currentActor() ?? partActor('console')
  const settings = settingsOf(deployment, { ...options, transactions, actor })
  const erasures = erasuresOf(deployment, { ...options, transactions })
  const suppressed = suppressionsOf(deployment, { ...options, transactions })
  const transport = await transportOf(config)
  const deadLetters = openDeadLetters(options, (signal) => erasures.current(signal))
  const replays = openReplays(options, settings, (signal) => erasures.current(signal))
  return {
    heldUp: () => (settings.heldAt === null ? null : settings.problem),
    warning: () => transactions.warning(),
    problem() {
      if (settings.problem !== null) return settings.problem
      if (!erasures.connected) return because('the deletions’ log cannot be read', erasures.trouble)
      if (suppressed.connected) return null
      return because('the log of suppressed users cannot be read', suppressed.trouble)
    },
    async run(signal, onReady) {
      const unwatch = options.logCounts?.watch(transactions)
      const ending = new AbortController()
      let computations: OpenComputations | null = null
      const deletions = openDeletions(options, settings)
      const suppressions = openSuppressions(options, settings, (stop) => suppressed.current(stop))
      const liveTail = openLiveTail(options)
      let events: Promise<void> | null = null
      let messages: OpenMessages | null = null
      let running: Promise<unknown> = Promise.resolve()
      let stopEnding = () => {}
      let statistics: Statistics | null = null
      let following: Promise<void> | null = null
      try {
        await checkStart(kafka, config, log, 'console')
        await Promise.all([
          codecs.settings.ready(),
          ...[settings, erasures, suppressed].map((log) => log.start(signal)),
        ])
        const keptMs = await heldKeptMs(kafka, topics)
        computations = await openComputations({ ...options, settings }, ending.signal)
        messages = await openMessages(options, (stop) => erasures.current(stop))
        statistics = await openStatistics(options)
        following = statistics.run(ending.signal)
        if (signal.aborted) return
        const audits = openAudits(deployment, statistics.database, settings)
        stopEnding = endPauses(settings, log)
        onReady({
          settings,
          secrets,
          sendSample: (destination) => sendSample(destination, { transport, secrets, now: Date.now() }),
          deadLetters,
          computations,
          deletions,
          suppressions,
          messages,
          readChanges: (each, stop) => readChanges(settingsHistoryOf(deployment), each, stop),
          replays: replaysOf(replays),
          heldKeptMs: keptMs,
          statistics: statistics.database,
          audits,
          infrastructure: openInfrastructure(options),
          callsTopic: topics.calls,
          collectorUrl: collectorUrlOf(config),
          liveTail,
          now: Date.now,
        })
        running = Promise.all([
          new ReplayRunner(replays).run(ending.signal),
          markForCompaction(
            { kafka, topics: [topics.memberships, topics.suppressions], log, ...options.compactionMarks },
            ending.signal,
          ),
          config.auditIntervalMs === null
            ? null
            : runAudits(audits, config.auditIntervalMs, { signal: ending.signal, log, now: Date.now }),
        ])
        if (options.operationalEvents !== null)
          events = runOperationalEvents(
            { ...options, deletions, times: options.operationalEvents },
            ending.signal,
          )
        // A log that can never be read ends the part.
        await Promise.race([untilAborted(signal), settings.ended, erasures.ended, suppressed.ended])
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        unwatch?.()
        ending.abort()
        await running
        stopEnding()
        computations?.close()
        await messages?.close()
        suppressions.close()
        await events
        await following
        await statistics?.close()
        await Promise.all([
          liveTail.close(),
          deletions.close(),
          ...[settings, erasures, suppressed].map((log) => log.close()),
          transport.close(0),
        ])
      }
    },
  }
}
