import { boundHeap } from '../adapters/bound-heap.ts'
import { endPauses } from '../adapters/folded-log/pause-ends.ts'
import { openConsoleServer } from '../console/server.ts'
import type { LoginCode } from '../console/page/session.ts'
import { openIdentityProvider } from '../adapters/http/identity-provider.ts'
import { urlAt } from '../adapters/http/serving.ts'
import { openMailer } from '../adapters/mailer.ts'
import { OpenTransactions } from '../adapters/kafka/open-transactions.ts'
import { markForCompaction, type MarkTimes } from '../adapters/kafka/write/compaction-marks.ts'
import { variables } from '../config/variables.ts'
import { ConsoleCounts } from '../adapters/metrics/console-metrics.ts'
import type { LogCounts } from '../adapters/metrics/log-counts.ts'
import { mailedAlerts } from '../operators/alerts/mail.ts'
import { MailQueue } from '../operators/alerts/mail-queue.ts'
import { currentActor } from '../operators/settings/writer.ts'
import { operations } from '../operators/operations.ts'
import type { ConsoleServices } from '../operators/services.ts'
import type { OperationalTimes } from '../operators/operational-events/events.ts'
import { type AuditRuns, runAudits } from '../operators/audit/runs.ts'
import { ReplayRunner } from '../operators/replay/runner.ts'
import { version } from '../version.ts'
import { because, checkStart } from './check-start.ts'
import type { Context } from './context.ts'
import { usageError } from './flags.ts'
import { runOperationalEvents } from '../operators/operational-events/open.ts'
import { listeningPart, PartLives, untilAborted, type Life, type ListeningPart } from './part-lives.ts'
import { openServices, type OpenServices } from './services.ts'
import { partActor } from '../operators/settings/actor.ts'

export interface OpenConsoleOptions extends Context {
  logCounts?: LogCounts
  /** CONSOLE_HOST unless given. */
  host?: string
  /** How operational events are sent; null for a console that sends none. */
  operationalEvents?: Partial<OperationalTimes> | null
  /** When compacted topics are marked; within an hour and then daily unless given. */
  compactionMarks?: MarkTimes
  /** How often retention is read again. */
  retentionEveryMs?: number
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
  const { companyLogin } = config
  if (companyLogin !== null && companyLogin.clientSecret === null)
    throw usageError(
      `CONSOLE_OIDC_CLIENT_SECRET is not set, and nobody can log in by CONSOLE_OIDC_ISSUER without it; it takes ${variables.CONSOLE_OIDC_CLIENT_SECRET.takes}`,
    )
  const counts = new ConsoleCounts()
  const lives = new PartLives('console', log, () => assemble(options, counts))
  counts.auditIntervalMs = config.auditIntervalMs
  counts.audit = () => lives.ready?.audits.outcome ?? null
  const listen = () =>
    openConsoleServer({
      port: config.consolePort,
      host,
      token: adminToken,
      version,
      loginCode: options.loginCode ?? null,
      companyLogin: companyLogin && {
        settings: companyLogin,
        provider: openIdentityProvider(companyLogin),
      },
      operations,
      services: () => lives.ready?.services ?? null,
      counts,
      log,
    })
  return {
    counts,
    checks: lives.checks,
    restarts: lives.restarts,
    report: {
      role: 'console',
      settingsVersion: () => lives.ready?.services.settings.state.version ?? 0,
    },
    ...listeningPart(lives.part, listen, (port) =>
      log.info(
        { host, port },
        `admin API at ${urlAt(host, port)}/api/v1/openapi.json, the page at ${urlAt(host, port)}`,
      ),
    ),
  }
}

/** What a console works with while it takes requests. */
interface ReadyConsole {
  services: ConsoleServices
  audits: AuditRuns
}

function assemble(options: OpenConsoleOptions, counts: Pick<ConsoleCounts, 'mail'>): Life<ReadyConsole> {
  const { config, kafka, log, codecs } = options
  const mails =
    config.mail &&
    new MailQueue({
      mailer: openMailer(config.mail),
      alerts: () => mailedAlerts(config.mail!, settings.state),
      log,
      count: (outcome) => counts.mail(outcome),
      now: Date.now,
    })
  const transactions = new OpenTransactions()
  const ending = new AbortController()
  let following: Promise<void> = Promise.resolve()
  const open = openServices(options, {
    ...options,
    transactions,
    mails,
    actor: () => currentActor() ?? partActor('console'),
    signal: ending.signal,
    // What they lack is folded behind the start.
    async readStatistics(statistics) {
      following = statistics.run(ending.signal)
    },
  })
  const { services, settings, erasures, suppressed } = open
  return {
    heldUp: () => (settings.heldAt === null ? null : settings.problem),
    warning: () => transactions.warning(),
    problem() {
      if (settings.problem !== null) return settings.problem
      if (!erasures.log.connected) return because('the deletions’ log cannot be read', erasures.log.trouble)
      if (suppressed.log.connected) return null
      return because('the log of suppressed users cannot be read', suppressed.log.trouble)
    },
    async run(signal, onReady) {
      const end = () => ending.abort()
      signal.addEventListener('abort', end, { once: true })
      const unwatch = options.logCounts?.watch(transactions)
      let running: Promise<unknown> = Promise.resolve()
      let stopEnding = () => {}
      try {
        await checkStart(kafka, config, log, 'console')
        await Promise.all([
          codecs.settings.ready(),
          settings.start(signal),
          erasures.start(),
          suppressed.start(),
        ])
        const { computations, messages, heldKeptMs } = services
        await Promise.all([computations(), messages(), heldKeptMs()])
        const audits = await open.audits()
        if (signal.aborted) return
        stopEnding = endPauses(settings, log)
        onReady({ services, audits })
        running = runBehind({ ...options, mails }, open, audits, ending.signal)
        // A log that can never be read ends the part.
        await Promise.race([untilAborted(signal), settings.ended, erasures.log.ended, suppressed.log.ended])
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        signal.removeEventListener('abort', end)
        unwatch?.()
        end()
        await running
        stopEnding()
        await following
        await open.close()
      }
    },
  }
}

/** What a console does beside answering. Resolves when the signal has aborted. */
async function runBehind(
  { operationalEvents, compactionMarks, mails, ...context }: OpenConsoleOptions & { mails: MailQueue | null },
  { replays, deletions }: Pick<OpenServices, 'replays' | 'deletions'>,
  audits: AuditRuns,
  signal: AbortSignal,
): Promise<void> {
  const { config, kafka, topics, log } = context
  const compacted = [topics.memberships, topics.suppressions]
  await Promise.all([
    new ReplayRunner(replays).run(signal),
    markForCompaction({ kafka, topics: compacted, log, ...compactionMarks }, signal),
    config.auditIntervalMs === null
      ? null
      : runAudits(audits, config.auditIntervalMs, { signal, log, now: Date.now }),
    operationalEvents === null
      ? null
      : runOperationalEvents({ ...context, deletions, mails, times: operationalEvents }, signal),
    mails?.run(signal),
  ])
}
