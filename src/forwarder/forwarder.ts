import { setTimeout as delay } from 'node:timers/promises'
import type { RetryPolicy } from '../core/delivery/disposition.ts'
import {
  commitIntervalMs,
  deliveriesPerSlot,
  maxBytesInFlight,
  minDeliveries,
} from '../core/pacing/limits.ts'
import type { PaceBounds } from '../core/pacing/endpoint-pace.ts'
import type { SecretPlace } from '../core/settings/secret-place.ts'
import type { SealedSecret } from '../core/settings/settings.ts'
import type { TopicNames } from '../core/topics.ts'
import { AttemptReports, type Log } from './send/attempt-reports.ts'
import { CallPlanner } from './plan/call-planner.ts'
import { GroupConsumer, type GroupConsumerEvents } from './consume/group-consumer.ts'
import { Dispatcher } from './send/dispatcher.ts'
import { Erased } from './plan/erased.ts'
import { RecordPublisher } from './settle/record-publisher.ts'
import { HeadOfLineMonitor } from './send/head-of-line-monitor.ts'
import type { Planner } from './plan/planner.ts'
import { Lag } from './consume/lag.ts'
import { Ledger } from './commit/ledger.ts'
import type { AssignedPartition } from './consume/assigned-partition.ts'
import type { RecordSource, TopicPartition } from './consume/record-source.ts'
import type { ForwarderMetrics } from './metrics.ts'
import type { Decoders, ErasureSource, SettingsSource } from './plan/inputs.ts'
import type { WebhookTransport } from './send/webhook-transport.ts'
import type { Encoders, RecordSink } from './settle/record-sink.ts'
import { RetryPlanner } from './plan/retry-planner.ts'
import { MemoryBudget } from './send/memory-budget.ts'
import { Routing } from './plan/routing.ts'
import { SchemaLoader } from './plan/schema-loader.ts'
import { SettingsCatchUp } from './plan/settings-catch-up.ts'
import { ForwarderStatus } from './forwarder-status.ts'
import { Settler } from './settle/settler.ts'
import { Slots } from './send/slots.ts'
import { steadyClock } from './steady-clock.ts'
import { PartitionScheduler } from './consume/partition-scheduler.ts'

export interface ForwarderParts {
  calls: RecordSource
  retries: RecordSource
  decoders: Decoders
  encoders: Encoders
  sink: RecordSink
  settings: SettingsSource
  erasures: ErasureSource
  openSecret(sealed: SealedSecret, place: SecretPlace): string
  transport: WebhookTransport
  metrics: ForwarderMetrics
  topics: TopicNames
  tierDelayMs(topic: string): number
  endOffsets(topics: readonly string[]): Promise<(TopicPartition & { end: number; start: number })[]>
  /** An endpoint answered 410. Called for each such answer; must not throw. */
  reportGone(destinationId: string, urlId: string): void
  /** The ledger records plain first-time deliveries too. */
  everything: boolean
  policy: RetryPolicy
  bounds: PaceBounds
  maxInFlight: number
  /** What retry and dead letter topics take (max.message.bytes). */
  maxRecordBytes: number
  /** How long a stop waits for requests on the wire and for publications, in ms. */
  drainMs: number
  log: Log
}

/** How long a stop waits for the last tally and commit in any case, in ms. */
const lastCommitMs = 1_000
const watchIntervalMs = 250
const lagIntervalMs = 5_000

/** analytics.calls and the retry tiers → signed POSTs (docs/architecture.md). */
export class Forwarder {
  readonly name = 'forwarder'
  readonly #parts: ForwarderParts
  readonly #stopping = new AbortController()
  readonly #calls: GroupConsumer
  readonly #retries: GroupConsumer
  readonly #routing: Routing
  readonly #dispatcher: Dispatcher
  readonly #settler: Settler
  readonly #ledger: Ledger
  readonly #publisher: RecordPublisher
  readonly #budget: MemoryBudget
  readonly #scheduler: PartitionScheduler
  readonly #headOfLineMonitor: HeadOfLineMonitor
  readonly #lag: Lag
  readonly #status: ForwarderStatus
  #failed: (error: unknown) => void = () => {}

  constructor(parts: ForwarderParts) {
    this.#parts = parts
    const { log, metrics } = parts
    const { signal } = this.#stopping
    const events: GroupConsumerEvents = {
      wake: (partition) => this.#scheduler.wake(partition),
      lost: () => this.#dropLost(),
      resumed: () => this.#pumpAll(),
      flush: () => this.#publisher.settled(),
      offsetsLost: (partition, first, last) => this.#offsetsLost(partition, first, last),
    }
    this.#publisher = new RecordPublisher(parts.sink, parts.maxRecordBytes, (error) => this.#failed(error))
    this.#budget = new MemoryBudget(
      Math.max(minDeliveries, parts.maxInFlight * deliveriesPerSlot),
      maxBytesInFlight,
      (partition) => this.#scheduler.wake(partition),
    )
    const written = { ...parts, publisher: this.#publisher, budget: this.#budget }
    this.#ledger = new Ledger({ ...written, topic: parts.topics.deliveries })
    this.#calls = new GroupConsumer(parts.calls, events, this.#ledger, log)
    this.#retries = new GroupConsumer(parts.retries, events, this.#ledger, log)
    const erased = new Erased(parts.erasures)
    this.#settler = new Settler({ ...written, ledger: this.#ledger, erased })
    const reports = new AttemptReports({ ...parts, ledger: this.#ledger })
    this.#dispatcher = new Dispatcher(this.#settler, reports, new Slots(parts.maxInFlight))
    this.#routing = new Routing({
      endpoints: {
        dispatcher: this.#dispatcher,
        budget: this.#budget,
        bounds: parts.bounds,
        reports,
        waits: {
          blocked: (endpoint) => this.#headOfLineMonitor.check(endpoint, steadyClock.now()),
          wake: (partition) => this.#scheduler.wake(partition),
        },
      },
      transport: parts.transport,
      metrics,
      openSecret: (sealed, place) => parts.openSecret(sealed, place),
      failed: (destination, reason) =>
        log.error(
          { destination, reason },
          'a destination cannot be set up: its calls go to the retry tiers until it can',
        ),
    })
    const schemas = new SchemaLoader(log, signal)
    const shared = {
      schemas,
      routing: this.#routing,
      catchUp: new SettingsCatchUp(parts.settings, log, signal),
      dispatcher: this.#dispatcher,
      settler: this.#settler,
      ledger: this.#ledger,
      budget: this.#budget,
    }
    const callPlanner = new CallPlanner({ ...shared, decoder: parts.decoders.calls })
    const retryPlanner = new RetryPlanner({
      ...shared,
      decoder: parts.decoders.retries,
      policy: parts.policy,
      tierDelayMs: (topic) => parts.tierDelayMs(topic),
      erased,
    })
    const plannerOf = (partition: AssignedPartition): Planner =>
      partition.owner === this.#calls ? callPlanner : retryPlanner
    this.#scheduler = new PartitionScheduler(
      plannerOf,
      (partition) => this.#budget.wait(partition),
      (partition) => partition.owner.finished(partition),
      () => {
        const { slots } = this.#dispatcher
        slots.countWaiting()
        return slots.hasPlenty
      },
    )
    this.#headOfLineMonitor = new HeadOfLineMonitor(
      this.#routing,
      this.#dispatcher,
      plannerOf,
      log,
      () => this.#budget.waiting,
      () => this.#calls.isStalled || this.#retries.isStalled,
    )
    this.#lag = new Lag([this.#calls, this.#retries], (topics) => parts.endOffsets(topics))
    this.#status = new ForwarderStatus({
      calls: this.#calls,
      retries: this.#retries,
      sink: parts.sink,
      schemas,
      routing: this.#routing,
      dispatcher: this.#dispatcher,
      ledger: this.#ledger,
      lag: this.#lag,
    })
    metrics.watch(this.#status)
  }

  /** Null when it takes work; otherwise why not. */
  problem(): string | null {
    return this.#status.problem()
  }

  /** A problem that does not stop the work but should be known, in one line for people; null when there is none. */
  warning(): string | null {
    return this.#status.warning()
  }

  /** The settings and the erasures must have been folded to their end before. */
  async run(signal: AbortSignal): Promise<void> {
    const { settings, calls, retries } = this.#parts
    this.#routing.apply(settings.state)
    settings.onChange(() => this.#applySettings())
    const failed = new Promise<never>((_, reject) => (this.#failed = reject))
    const stopped = new Promise<void>((resolve) => {
      if (signal.aborted) resolve()
      signal.addEventListener('abort', () => resolve(), { once: true })
    })
    const timers = [
      setInterval(() => this.#commitAll(), commitIntervalMs),
      setInterval(() => this.#watch(), watchIntervalMs),
      setInterval(() => void this.#lag.refreshIfWatched().catch(() => {}), lagIntervalMs),
    ]
    try {
      const started = Promise.all([calls.start(this.#calls), retries.start(this.#retries)])
      await Promise.race([started.then(() => stopped), stopped, failed, calls.failed, retries.failed])
      await this.#drain()
    } finally {
      for (const timer of timers) clearInterval(timer)
      this.#stopping.abort()
      this.#scheduler.stop()
      this.#dispatcher.stop()
      await Promise.all([calls.stop(), retries.stop()])
      for (const consumer of [this.#calls, this.#retries]) consumer.lost()
      await this.#parts.transport.close(0)
    }
  }

  /** Stop taking → finish what is on the wire → publish → commit; leaving the group comes after. */
  async #drain(): Promise<void> {
    this.#scheduler.stop()
    this.#dispatcher.stop()
    const deadline = steadyClock.now() + this.#parts.drainMs
    while (this.#dispatcher.inFlight > 0 && steadyClock.now() < deadline) await delay(5)
    await Promise.race([
      this.#publisher.settled(),
      delay(Math.max(0, deadline - steadyClock.now()), undefined, { ref: false }),
    ])
    // While Kafka is away there is no last commit: the next owner sends again what is not committed.
    await Promise.race([
      Promise.all([this.#calls, this.#retries].map((consumer) => consumer.commitAll())),
      delay(Math.max(lastCommitMs, deadline - steadyClock.now()), undefined, { ref: false }),
    ])
    if (this.#dispatcher.inFlight > 0) {
      this.#parts.log.warn({ requests: this.#dispatcher.inFlight }, 'stopped before all requests had ended')
    }
  }

  #commitAll(): void {
    for (const consumer of [this.#calls, this.#retries]) {
      consumer.tick().catch((error: unknown) => this.#failed(error))
    }
  }

  #watch(): void {
    this.#headOfLineMonitor.tick(steadyClock.now())
    // After a pause in the heartbeats nothing else would check the queues again.
    this.#pumpAll()
    this.#publisher.lookAgain()
  }

  /** Queues that were not allowed to start anything, or found no slot, may be now. */
  #pumpAll(): void {
    const now = steadyClock.now()
    for (const endpoint of this.#routing.endpoints()) if (endpoint.queued > 0) endpoint.pump(now)
  }

  /** After partitions were lost: their queued attempts are not sent. */
  #dropLost(): void {
    for (const endpoint of this.#routing.endpoints()) endpoint.dropLost()
  }

  #applySettings(): void {
    try {
      this.#routing.apply(this.#parts.settings.state)
    } catch (error) {
      this.#failed(error)
      return
    }
    for (const consumer of [this.#calls, this.#retries]) {
      for (const partition of consumer.partitions()) {
        // A head that waits was planned with settings that have passed.
        partition.head = null
        if (partition.block?.kind !== 'endpoint') continue
        partition.block.endpoint.waiters.delete(partition)
        this.#scheduler.wake(partition)
      }
    }
  }

  #offsetsLost({ topic, partition }: TopicPartition, first: number, last: number): void {
    const { log, metrics } = this.#parts
    const count = last - first + 1
    metrics.lostOffsets(topic, count)
    log.error(
      { topic, partition, first, last, count },
      `lost ${first}..${last}: retention ran past this group`,
    )
    this.#ledger.lost({ topic, partition }, first, last)
  }
}
