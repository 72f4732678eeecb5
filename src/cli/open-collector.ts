import { randomInt } from 'node:crypto'
import { allocateYoung } from '../adapters/bound-heap.ts'
import type { SettingsLog } from '../adapters/folded-log/settings-log.ts'
import { openCollectorServer } from '../adapters/http/collector-server.ts'
import { urlAt } from '../adapters/http/serving.ts'
import { OpenTransactions } from '../adapters/kafka/open-transactions.ts'
import { readTail } from '../adapters/kafka/read/read-range.ts'
import { CallBatchWriter } from '../adapters/kafka/write/call-batch-writer.ts'
import { CollectorCounts } from '../adapters/metrics/collector-metrics.ts'
import type { LogCounts } from '../adapters/metrics/log-counts.ts'
import { ProduceDurations } from '../adapters/metrics/produce-durations.ts'
import { Collector } from '../collector/collector.ts'
import { RecentCalls } from '../collector/recent-calls.ts'
import { RequestBudget, type BudgetLimits } from '../collector/request-budget.ts'
import { SourceRates } from '../collector/source-rates.ts'
import { WriteKeys } from '../collector/write-keys.ts'
import { RecentIds } from '../core/call/recent-ids.ts'
import { because, checkStart } from './check-start.ts'
import type { Context } from './context.ts'
import { settingsOf, suppressionsOf } from './deployment.ts'
import {
  closedWith,
  listeningPart,
  PartLives,
  untilAborted,
  type Life,
  type ListeningPart,
} from './part-lives.ts'

export interface OpenCollectorOptions extends Context {
  /** Shared with other parts of this process, which then show it; its own unless given. */
  produceDurations?: ProduceDurations
  logCounts?: LogCounts
  /** COLLECTOR_HOST unless given. */
  host?: string
  limits?: BudgetLimits
  /** A request that is not complete by then is cut off, in ms. */
  requestMs?: number
  /** A connection whose answer is not taken by then ends, in ms. */
  answerMs?: number
  /** Kafka must acknowledge within, in ms. */
  deadlineMs?: number
}

const defaultLimits: BudgetLimits = { calls: 50_000, bytes: 64 << 20 }
/** UTF-16 units: about 700,000 ids in 64 MB, which are there only once they are used. */
const recentUnits = 32 << 20
/** What is read again at the start to know retries by. */
const tailMs = 10 * 60_000
const tailRecords = 200_000

/**
 * The collector as a part. It listens from its start to its end; behind that, it restarts while Kafka or the
 * registry is away and, a bounded number of times, after a bug. Its run rejects with `local` for a port that is
 * taken, and with `setup` where topics or schemas are missing.
 */
export function openCollector(options: OpenCollectorOptions): ListeningPart<CollectorCounts> {
  allocateYoung()
  const { config, log } = options
  const host = options.host ?? config.collectorHost
  const ownDurations = options.produceDurations ? [] : [new ProduceDurations()]
  const produceDurations = options.produceDurations ?? ownDurations[0]!
  const counts = new CollectorCounts(ownDurations, config.metricsDestinations)
  const budget = new RequestBudget(options.limits ?? defaultLimits)
  // Kept over a new start: what was acknowledged stays so.
  const recent = new RecentCalls(new RecentIds(recentUnits, randomInt(2 ** 32)))
  const rates = new SourceRates(config.sourceMaxRate || Infinity, () => performance.now())
  let settings: SettingsLog | null = null
  const opened = (its: SettingsLog) => void (settings = its)
  const lives = new PartLives('collector', log, () =>
    assemble(options, { recent, rates, counts, produceDurations, opened }),
  )
  const listen = () =>
    openCollectorServer({
      port: config.collectorPort,
      trustedProxies: config.trustedProxies,
      collectorUrl: config.collectorUrl,
      servesBrowserSdk: config.servesBrowserSdk,
      host,
      budget,
      collector: () => lives.ready,
      log,
      ...(options.requestMs && { requestMs: options.requestMs }),
      ...(options.answerMs && { answerMs: options.answerMs }),
    })
  return {
    counts,
    checks: lives.checks,
    restarts: lives.restarts,
    report: {
      role: 'collector',
      takeCollected: () => counts.takeCollected(),
      requestsInFlight: () => budget.requests,
      settingsVersion: () => settings?.state.version ?? 0,
    },
    ...listeningPart(lives.part, listen, (port) =>
      log.info({ host, port }, `collecting at ${urlAt(host, port)}/v1/batch`),
    ),
  }
}

function assemble(
  options: OpenCollectorOptions,
  kept: {
    recent: RecentCalls
    rates: SourceRates
    counts: CollectorCounts
    produceDurations: ProduceDurations
    /** Called with the settings that it works by. */
    opened(settings: SettingsLog): void
  },
): Life<Collector> {
  const { config, kafka, log, topics, codecs } = options
  const transactions = new OpenTransactions()
  const open = new AsyncDisposableStack()
  const settings = closedWith(open, settingsOf(options, { ...options, transactions }))
  const suppressions = closedWith(open, suppressionsOf(options, { ...options, transactions }))
  kept.opened(settings)
  const writer = closedWith(
    open,
    new CallBatchWriter({
      kafka,
      topic: topics.calls,
      codec: codecs.calls,
      log,
      produced: (seconds) => kept.produceDurations.observe(seconds),
      ...(options.deadlineMs && { deadlineMs: options.deadlineMs }),
    }),
  )
  const collector = new Collector({
    keys: new WriteKeys(settings),
    recent: kept.recent,
    sink: writer,
    metrics: kept.counts,
    rates: kept.rates,
    suppressions,
  })
  return {
    heldUp: () => (settings.heldAt === null ? null : settings.problem),
    warning: () => transactions.warning(),
    problem() {
      if (settings.problem !== null) return settings.problem
      if (!suppressions.connected)
        return because('the log of suppressed users cannot be read', suppressions.trouble)
      return writer.problem()
    },
    async run(signal, onReady) {
      const unwatch = options.logCounts?.watch(transactions)
      open.defer(() => unwatch?.())
      try {
        await checkStart(kafka, config, log, 'collector')
        await Promise.all([codecs.calls.ready(), settings.start(signal), suppressions.start(signal)])
        writer.start()
        await recall(options, kept.recent, signal)
        if (signal.aborted) return
        onReady(collector)
        // A log that can never be read ends the part.
        await Promise.race([untilAborted(signal), settings.ended, suppressions.ended, writer.failed])
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        await open.disposeAsync()
      }
    },
  }
}

/** Learns from the topic's tail which calls came last, so that a retry after a restart is known as one. */
async function recall(
  { kafka, log, topics, codecs: { calls } }: Context,
  recent: RecentCalls,
  signal: AbortSignal,
): Promise<void> {
  await readTail({
    kafka,
    topic: topics.calls,
    log,
    since: Date.now() - tailMs,
    atMost: tailRecords,
    signal,
    async onRecord({ value }) {
      const call = await calls.read(value)
      // What is no call could not be sent again; the forwarder makes it a dead letter.
      if (call) recent.remember(call.sourceId, call.messageId)
    },
  })
}
