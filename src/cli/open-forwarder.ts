import type { LookupFunction } from 'node:net'
import { boundHeap } from '../adapters/bound-heap.ts'
import { compileSchema } from '../adapters/json-schema/compile-schema.ts'
import { endPauses } from '../adapters/folded-log/pause-ends.ts'
import type { SettingsLog } from '../adapters/folded-log/settings-log.ts'
import { followRetention, readRetention } from '../adapters/kafka/admin/retention.ts'
import { GroupSource } from '../adapters/kafka/group/group-source.ts'
import { Brokers } from '../adapters/kafka/link/brokers.ts'
import { OpenTransactions } from '../adapters/kafka/open-transactions.ts'
import { readBetween } from '../adapters/kafka/read/read-range.ts'
import { StretchReader } from '../adapters/kafka/read/stretch-reader.ts'
import { topicRanges, type OffsetRange } from '../adapters/kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../adapters/kafka/read/topic-record.ts'
import { keyAndValueOf, RecordEncoder } from '../adapters/kafka/wire/record-bundle.ts'
import { KafkaSink } from '../adapters/kafka/write/record-sink.ts'
import type { Logger } from '../adapters/log.ts'
import { ForwarderCounts } from '../adapters/metrics/forwarder-metrics.ts'
import type { LogCounts } from '../adapters/metrics/log-counts.ts'
import type { ProduceDurations } from '../adapters/metrics/produce-durations.ts'
import type { Codecs } from '../adapters/schema-registry/codecs.ts'
import type { KeyedRetryDelivery, KeyedTierRecord } from '../adapters/schema-registry/delivery-fields.ts'
import { createSecrets } from '../adapters/secrets.ts'
import { transportOf } from '../adapters/webhook/transport.ts'
import type { Config } from '../config/config.ts'
import { isRun } from '../core/delivery/deferred-run.ts'
import type { HeartbeatEndpoint } from '../core/ledger/heartbeat.ts'
import { defaultBreakerLimits } from '../core/pacing/breaker.ts'
import type { PaceBounds } from '../core/pacing/endpoint-pace.ts'
import { defaultTrickle, queueWaitMs, startInFlightPerEndpoint } from '../core/pacing/limits.ts'
import { strictTier, tierOfTopic } from '../core/topics.ts'
import { messageOf, PostriderError } from '../errors.ts'
import { Forwarder } from '../forwarder/forwarder.ts'
import type { ParkedPlace } from '../forwarder/send/strict-order.ts'
import type { Encoders } from '../forwarder/settle/record-publisher.ts'
import { partActor } from '../operators/settings/actor.ts'
import { because, checkStart } from './check-start.ts'
import type { Context } from './context.ts'
import { erasuresOf, settingsOf, suppressionsOf } from './deployment.ts'
import { closedWith, PartLives, type Life, type OpenPart } from './part-lives.ts'

export interface OpenForwarderOptions extends Context {
  /** Resolves webhook host names; default the system's. */
  lookup?: LookupFunction
  /** Shared with other parts of this process, which then show it; its own unless given. */
  produceDurations?: ProduceDurations
  logCounts?: LogCounts
  /** How often retention is read again. */
  retentionEveryMs?: number
}

/** What retry topics and dead letters take by contract (max.message.bytes), less room for the batch's header. */
const maxRecordBytes = 4 * 1024 * 1024 - 1_024
/** V8's space for young objects: `boundHeap`. */
const youngMb = 32
/** Beyond the webhook timeout, for publishing and the last commit. */
const drainMarginMs = 5_000
/** A stop waits for the fetch that is in flight, and a heartbeat goes out after it. */
const fetchWaitMs = 1_000

/**
 * The forwarder as a part that restarts while Kafka or the registry is away and, a bounded number of times,
 * after a bug. Its run rejects with `setup` where topics or schemas are missing.
 */
export function openForwarder(options: OpenForwarderOptions): OpenPart<ForwarderCounts> {
  boundHeap(youngMb)
  const counts = new ForwarderCounts(options.produceDurations, options.config.metricsDestinations)
  const lives = new PartLives('forwarder', options.log, () => assemble(options, counts))
  return {
    counts,
    checks: lives.checks,
    restarts: lives.restarts,
    report: {
      role: 'forwarder',
      partitions: () => counts.gauges?.partitions() ?? [],
      endpoints: () => liveEndpoints(counts),
      settingsVersion: () => counts.gauges?.settingsVersion() ?? 0,
    },
    part: lives.part,
  }
}

function* liveEndpoints({ gauges }: ForwarderCounts): Iterable<HeartbeatEndpoint> {
  for (const { phase, breakerOpen: _, paused: __, ...rest } of gauges?.endpoints() ?? [])
    yield { ...rest, breaker: phase }
}

async function assemble(options: OpenForwarderOptions, counts: ForwarderCounts): Promise<Life<void>> {
  const { config, kafka, log, topics, codecs } = options
  const retryTopics = await checkStart(kafka, config, log, 'forwarder')
  await readyToWrite(codecs, config)
  counts.retention = await readRetention(kafka, topics)
  counts.watchLosses([topics.calls, ...retryTopics])

  const open = new AsyncDisposableStack()
  const transport = await transportOf(config, {
    counts: counts.connections,
    keepsSuccesses: config.ledger === 'all',
    ...(options.lookup && { lookup: options.lookup }),
  })
  open.defer(() => transport.close(0))
  const transactions = new OpenTransactions()
  const actor = () => partActor('forwarder')
  const settings = closedWith(open, settingsOf(options, { ...options, transactions, actor }))
  const erasures = closedWith(open, erasuresOf(options, { ...options, transactions }))
  const suppressions = closedWith(open, suppressionsOf(options, { ...options, transactions }))
  const sink = closedWith(open, new KafkaSink(kafka, topics, log, (seconds) => counts.produced(seconds)))
  const sourceOf = (groupId: string, sourceTopics: readonly string[]) =>
    new GroupSource({
      kafka,
      groupId,
      topics: sourceTopics,
      sessionTimeoutMs: config.sessionTimeoutMs,
      maxWaitMs: Math.min(fetchWaitMs, config.sessionTimeoutMs / 10),
      transactions,
      log,
    })
  const delays = new Map(retryTopics.map((topic) => [topic, tierOfTopic(topics, topic)!.delayMs]))
  // Connections of their own for the lag gauge: it must wait for nothing else, and nothing for it.
  const lagBrokers = closedWith(open, new Brokers(kafka))
  const callReader = closedWith(open, new StretchReader(kafka, topics.calls, log))
  const secrets = createSecrets(config.secretsKeys)
  const forwarder = new Forwarder({
    calls: sourceOf(config.groupId, [topics.calls]),
    retries: sourceOf(`${config.groupId}.retries`, retryTopics),
    decoders: { calls: codecs.calls, retries: codecs.retries(config.retryTiers[0]!.name) },
    readCalls: (partition, offsets) => callReader.read(partition, offsets),
    readParked: (ranges, take, signal) => readParked(options, ranges, take, signal),
    encoders: encodersOf(codecs),
    sink,
    settings,
    erasures,
    suppressions,
    openSecret: (sealed, place) => secrets.open(sealed, place),
    compileSchema,
    transport,
    metrics: counts,
    topics,
    tierDelayMs: (topic) => delays.get(topic)!,
    async endOffsets(names) {
      const ranges = await topicRanges(lagBrokers, names)
      return ranges.map(({ topic, partition, low, high }) => ({ topic, partition, start: low, end: high }))
    },
    // One request to any broker: to ask for offsets opens connections, which an end of the process may not find.
    async callPartitions() {
      lagBrokers.follow(topics.calls)
      await lagBrokers.refresh()
      return lagBrokers.partitions(topics.calls) ?? 0
    },
    reportGone: goneReporter(settings, log),
    everything: config.ledger === 'all',
    policy: { tiers: config.retryTiers, windowMs: config.retryWindowMs },
    bounds: paceBounds(config),
    maxInFlight: config.maxInFlight,
    maxRecordBytes,
    drainMs: config.webhookTimeoutMs + drainMarginMs,
    log,
  })
  return {
    problem() {
      if (settings.problem !== null) return settings.problem
      if (!erasures.connected) return because('the log of deletion requests cannot be read', erasures.trouble)
      if (!suppressions.connected)
        return because('the log of suppressed users cannot be read', suppressions.trouble)
      return forwarder.problem()
    },
    warning() {
      const warnings = [forwarder.warning(), transactions.warning()].filter((each) => each !== null)
      return warnings.length === 0 ? null : warnings.join('; ')
    },
    async run(signal, onReady) {
      onReady()
      const stopping = new AbortController()
      const stop = () => stopping.abort()
      const unwatch = options.logCounts?.watch(transactions)
      open.defer(() => unwatch?.())
      signal.addEventListener('abort', stop, { once: true })
      open.defer(() => signal.removeEventListener('abort', stop))
      try {
        await Promise.all([settings.start(signal), erasures.start(signal), suppressions.start(signal)])
        open.defer(endPauses(settings, log))
        const everyMs = options.retentionEveryMs
        open.defer(
          followRetention({ kafka, topics, log, everyMs }, (retention) => (counts.retention = retention)),
        )
        const running = forwarder.run(stopping.signal)
        // A log that can never be read ends the part.
        await Promise.race([running, settings.ended, erasures.ended, suppressions.ended]).finally(
          async () => {
            stop()
            await running.catch(() => {})
          },
        )
      } catch (error) {
        if (!signal.aborted) throw error
      } finally {
        await open.disposeAsync()
      }
    },
  }
}

/** Reads what lies in the topic of parked calls. What is none is left to who sends them. */
async function readParked(
  { kafka, topics, codecs, log }: Context,
  ranges: readonly OffsetRange[],
  take: (found: ParkedPlace) => void,
  signal: AbortSignal,
): Promise<void> {
  const codec = codecs.retries(strictTier.name)
  const onRecord = async ({ partition, offset, key, value }: TopicRecord) => {
    if (value === null) return
    const delivery = await codec.decode(value).catch((error: unknown) => {
      if (error instanceof PostriderError && error.code === 'undecodable') return null
      throw error
    })
    if (delivery === null || isRun(delivery)) return
    take({ partition, offset, key: key && key.toString('latin1'), delivery })
  }
  await readBetween(ranges, { kafka, topic: topics.retry(strictTier.name), log, onRecord, signal })
}

/** Resolves once every record that a forwarder writes can be encoded. */
export async function readyToWrite(codecs: Codecs, config: Config): Promise<void> {
  await Promise.all([
    codecs.calls.ready(),
    codecs.deadLetters.ready(),
    codecs.deliveries.ready(),
    codecs.settings.ready(),
    ...[...config.retryTiers, strictTier].map(({ name }) => codecs.retries(name).ready()),
  ])
}

/** Encoders of what a forwarder writes. */
export function encodersOf(codecs: Codecs): Encoders {
  const retries = new Map<string, RecordEncoder<KeyedTierRecord>>()
  const deadLetters = new RecordEncoder(codecs.deadLetters)
  const events = new RecordEncoder(codecs.deliveries)
  const retriesOf = (tierName: string) => {
    let encoder = retries.get(tierName)
    if (!encoder) retries.set(tierName, (encoder = new RecordEncoder(codecs.retries(tierName))))
    return encoder
  }
  return {
    retry: (tierName, record, headers) => retriesOf(tierName).encode(record.key, record, headers),
    run: (tierName, run) => retriesOf(tierName).encode(null, run, {}),
    retryOf(tierName, record) {
      const { key, value } = keyAndValueOf(record)
      // The schema that it was written with is known, and `retry` wrote it.
      return { ...(codecs.retries(tierName).tryDecode(value) as KeyedRetryDelivery), key }
    },
    deadLetter: (record, headers) => deadLetters.encode(record.rawKey, record, headers),
    event: (key, event) => events.encode(key, event),
  }
}

/** Writes a 410 into the settings, so that `destinations show` says it; once per endpoint. */
export function goneReporter(
  settings: SettingsLog,
  log: Logger,
): (destinationId: string, urlId: string) => void {
  const reporting = new Set<string>()
  return (destinationId, urlId) => {
    const key = `${destinationId}/${urlId}`
    const endpoint = settings.state.destinations.get(destinationId)?.urls.find(({ id }) => id === urlId)
    if (!endpoint || endpoint.goneAt !== null || reporting.has(key)) return
    reporting.add(key)
    settings
      .execute({ type: 'report_endpoint_gone', destinationId, urlId, at: Date.now() })
      .catch((error: unknown) =>
        log.warn({ destination: destinationId, urlId }, `not noted as gone: ${messageOf(error)}`),
      )
      .finally(() => reporting.delete(key))
  }
}

/** How endpoints are driven by these settings. */
export const paceBounds = ({
  maxInFlightPerEndpoint,
  retryBudgetPercent,
  retryTiers,
}: Pick<Config, 'maxInFlightPerEndpoint' | 'retryBudgetPercent' | 'retryTiers'>): Omit<
  PaceBounds,
  'group'
> => ({
  breaker: defaultBreakerLimits,
  limit: {
    min: 1,
    start: Math.min(startInFlightPerEndpoint, maxInFlightPerEndpoint),
    max: maxInFlightPerEndpoint,
  },
  budget: { share: retryBudgetPercent / 100, ...defaultTrickle },
  maxWaitMs: queueWaitMs,
  returnDelaysMs: retryTiers.map(({ delayMs }) => delayMs),
})
