// What operations work with, put together once: the console serves it, and the command line uses it in its own process.
import type { FoldedLog } from '../adapters/folded-log/folded-log.ts'
import { readChanges } from '../adapters/folded-log/settings-history.ts'
import type { SettingsLog } from '../adapters/folded-log/settings-log.ts'
import { followRetention, readRetention } from '../adapters/kafka/admin/retention.ts'
import { openMailer } from '../adapters/mailer.ts'
import { schemaRefusal } from '../adapters/json-schema/compile-schema.ts'
import { createSecrets } from '../adapters/secrets.ts'
import { sendSample } from '../adapters/webhook/sample-call.ts'
import { openNewestCalls } from '../operators/destinations/kafka.ts'
import { transportOf } from '../adapters/webhook/transport.ts'
import type { ConsoleServices } from '../operators/services.ts'
import type { MailQueue } from '../operators/alerts/mail-queue.ts'
import { openComputations } from '../operators/audiences/kafka.ts'
import { openAudits } from '../operators/audit/kafka.ts'
import type { AuditRuns } from '../operators/audit/runs.ts'
import { openDeadLetters } from '../operators/dead-letters/kafka.ts'
import type { Deletions } from '../operators/deletions/deletions.ts'
import { openDeletions } from '../operators/deletions/kafka.ts'
import { openLiveTail } from '../operators/live/kafka.ts'
import { openDrafts } from '../operators/plans/kafka.ts'
import { openReplays } from '../operators/replay/kafka.ts'
import { replaysOf } from '../operators/replay/replays.ts'
import type { ReplayRig } from '../operators/replay/rig.ts'
import { type Statistics, openStatistics } from '../operators/statistics/follower.ts'
import { openWaiting } from '../operators/statistics/kafka.ts'
import { openSuppressions } from '../operators/suppression/kafka.ts'
import { openMessages } from '../operators/why/open.ts'
import type { Context } from './context.ts'
import { erasuresOf, settingsHistoryOf, settingsOf, suppressionsOf, type LogOptions } from './deployment.ts'
import { openInfrastructure } from '../operators/infrastructure/kafka.ts'
import { closedWith } from './part-lives.ts'

export interface ServicesOptions extends LogOptions {
  /** Who changes the settings. */
  actor: () => string
  /** Of a console that mails operational events. */
  mails?: MailQueue | null
  /** Ends what a start reads. */
  signal: AbortSignal
  /** Resolves once the statistics hold what they are to show first. */
  readStatistics(statistics: Statistics): Promise<void>
  /** How often retention is read again. */
  retentionEveryMs?: number
}

/** A log that is read to its end when it is first asked for. */
interface LazyLog {
  log: FoldedLog
  start(): Promise<void>
}

export interface OpenServices {
  /** For operations. The settings among them have to be started first. */
  services: ConsoleServices
  settings: SettingsLog
  erasures: LazyLog
  suppressed: LazyLog
  replays: ReplayRig
  deletions: Deletions
  statistics(): Promise<Statistics>
  audits(): Promise<AuditRuns>
  /** In the reverse order of opening. */
  close(): Promise<void>
}

/** Asks Kafka and the registry for nothing yet. */
export function openServices(deployment: Context, options: ServicesOptions): OpenServices {
  const { config, kafka, topics, log } = deployment
  const { signal } = options
  const open = new AsyncDisposableStack()
  const opening: Promise<unknown>[] = []
  /** What is opened when it is first asked for, and closed even if that is still going on at the end. */
  const opened = <T>(make: () => Promise<T>): (() => Promise<T>) =>
    once(() => {
      const made = make()
      opening.push(made)
      return made
    })
  const closing = <T extends { close(): unknown }>(made: T): T => closedWith(open, made)
  const settings = closing(settingsOf(deployment, options))
  const erasures = startedOnce(closing(erasuresOf(deployment, options)), signal)
  const suppressed = startedOnce(closing(suppressionsOf(deployment, options)), signal)
  const erased = async (stop?: AbortSignal) => {
    await erasures.start()
    return erasures.log.current(stop)
  }
  const secrets = createSecrets(config.secretsKeys)
  const transport = opened(async () => {
    const made = await transportOf(config)
    open.defer(() => made.close(0))
    return made
  })
  const deletions = closing(openDeletions(deployment, { settings, actor: options.actor }))
  const replays = openReplays(deployment, settings, erased)
  const statistics = opened(async () => {
    const made = closing(await openStatistics(deployment))
    await options.readStatistics(made)
    return made
  })
  const retention = opened(async () => {
    let newest = await readRetention(kafka, topics)
    const everyMs = options.retentionEveryMs
    open.defer(followRetention({ kafka, topics, log, everyMs }, (found) => (newest = found)))
    return () => newest
  })
  const messages = opened(async () => closing(await openMessages(deployment, erased)))
  const audits = once(async () =>
    openAudits(deployment, (await statistics()).database, settings, options.mails ?? null),
  )
  const services: ConsoleServices = {
    settings,
    secrets,
    schemaRefusal,
    draftPlan: openDrafts(deployment, settings),
    sendSample: async (destination, terms) =>
      sendSample(destination, { transport: await transport(), secrets, now: Date.now() }, terms),
    newestCalls: openNewestCalls(deployment, erased),
    deadLetters: openDeadLetters(deployment, erased),
    computations: opened(async () => closing(await openComputations({ ...deployment, settings }, signal))),
    deletions,
    erasures: erased,
    suppressions: closing(
      openSuppressions(deployment, settings, async (stop) => {
        await suppressed.start()
        return suppressed.log.current(stop)
      }),
    ),
    messages,
    catalogue: async () => (await messages()).catalogue,
    readChanges: (each, stop) => readChanges(settingsHistoryOf(deployment), each, stop),
    replays: replaysOf(replays),
    heldKeptMs: async () => (await retention())().heldMs,
    statistics: async () => (await statistics()).database,
    waiting: openWaiting(deployment, erased),
    audits,
    infrastructure: openInfrastructure(deployment),
    callsTopic: topics.calls,
    collectorUrl: collectorUrlOf(config),
    liveTail: closing(openLiveTail(deployment)),
    mailer: config.mail && openMailer(config.mail),
    mailsWaiting: () => options.mails?.waiting.length ?? null,
    now: Date.now,
  }
  return {
    services,
    settings,
    erasures,
    suppressed,
    replays,
    deletions,
    statistics,
    audits,
    async close() {
      await Promise.allSettled(opening)
      await open.disposeAsync()
    },
  }
}

/** Where nothing else is said, they run on this machine, at the port that both are given. */
const collectorUrlOf = ({ collectorUrl, collectorPort }: Context['config']): string | null =>
  collectorUrl ?? (collectorPort === 0 ? null : `http://localhost:${collectorPort}`)

/** The same result for every caller, an error too. */
function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | null = null
  return () => (made ??= make())
}

const startedOnce = <L extends FoldedLog & { start(signal?: AbortSignal): Promise<void> }>(
  log: L,
  signal: AbortSignal,
) => ({ log, start: once(() => log.start(signal)) })
