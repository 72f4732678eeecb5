import type { RetryPolicy } from '../core/delivery/disposition.ts'
import type { PaceBounds } from '../core/pacing/endpoint-pace.ts'
import { deliveriesPerSlot, maxBytesInFlight, minDeliveries } from '../core/pacing/limits.ts'
import { noLogin } from '../core/settings/settings.ts'
import type { CompileSchema } from '../core/tracking-plan/plan-check.ts'
import { strictTier, type TopicNames } from '../core/topics.ts'
import { Ledger } from './commit/ledger.ts'
import { SettledVersion } from './commit/settled-version.ts'
import { type AssignedPartition, waitingRecords, type WaitingRecord } from './consume/assigned-partition.ts'
import { GroupConsumer, type GroupConsumerEvents } from './consume/group-consumer.ts'
import { Lag, type PartitionRange } from './consume/lag.ts'
import { PartitionScheduler } from './consume/partition-scheduler.ts'
import type { RecordSource, TopicPartition } from './consume/record-source.ts'
import { DestinationLimits } from './destination-limits.ts'
import type { Log } from './log.ts'
import type { ForwarderMetrics, WatchedCertificate } from './metrics.ts'
import { CallPlanner } from './plan/call-planner.ts'
import { ConditionWatch, maxEvaluationMs, FilterFaults } from './plan/condition-watch.ts'
import { PlanWatch } from './plan/plan-watch.ts'
import type { OpenSecret } from './plan/destination-runtime.ts'
import type { ReadCalls } from './plan/due-run.ts'
import { Erased, Suppressed } from './plan/erased.ts'
import type { Decoders, ErasureSource, SettingsSource, SuppressionSource, Planner } from './plan/planner.ts'
import { RetryPlanner } from './plan/retry-planner.ts'
import { Routing } from './plan/routing.ts'
import { SchemaLoader } from './plan/schema-loader.ts'
import { SettingsCatchUp } from './plan/settings-catch-up.ts'
import { AttemptReports } from './send/attempt-reports.ts'
import { Dispatcher } from './send/dispatcher.ts'
import { HeadOfLineMonitor } from './send/head-of-line-monitor.ts'
import { MemoryBudget } from './send/memory-budget.ts'
import { Slots } from './send/slots.ts'
import { StrictOrder, type StrictOrderParts } from './send/strict-order.ts'
import type { WebhookTransport } from './send/webhook-transport.ts'
import { RecordPublisher, type Encoders, type RecordSink } from './settle/record-publisher.ts'
import { Settler } from './settle/settler.ts'
import { steadyClock } from './steady-clock.ts'

export interface ForwarderParts {
  calls: RecordSource
  retries: RecordSource
  decoders: Decoders
  readCalls: ReadCalls
  readParked: StrictOrderParts['readParked']
  encoders: Encoders
  sink: RecordSink
  settings: SettingsSource
  erasures: ErasureSource
  suppressions: SuppressionSource
  openSecret: OpenSecret
  /** Of tracking plans. */
  compileSchema: CompileSchema
  transport: WebhookTransport
  metrics: ForwarderMetrics
  topics: TopicNames
  tierDelayMs(topic: string): number
  endOffsets(topics: readonly string[]): Promise<PartitionRange[]>
  /** How many partitions the calls' topic has; 0 where that is not known at the moment. */
  callPartitions(): Promise<number>
  /** An endpoint answered 410. Called for each such answer; must not throw. */
  reportGone(destinationId: string, urlId: string): void
  /** The ledger records plain first-time deliveries too. */
  everything: boolean
  policy: RetryPolicy
  /** Its part of the group is known here. */
  bounds: Omit<PaceBounds, 'group'>
  maxInFlight: number
  /** What retry and dead letter topics take (max.message.bytes). */
  maxRecordBytes: number
  /** How long a stop waits for requests on the wire and for publications, in ms. */
  drainMs: number
  log: Log
}

/** The stages of the path, connected: what each gives the next, and what wakes what. */
export class Stages {
  readonly ledger: Ledger
  readonly calls: GroupConsumer
  readonly retries: GroupConsumer
  readonly schemas: SchemaLoader
  readonly routing: Routing
  readonly dispatcher: Dispatcher
  readonly publisher: RecordPublisher
  readonly scheduler: PartitionScheduler
  readonly headOfLineMonitor: HeadOfLineMonitor
  readonly lag: Lag
  readonly limits: DestinationLimits
  readonly settledVersion: SettledVersion
  readonly #settler: Settler
  readonly #order: StrictOrder
  readonly #retryPlanner: RetryPlanner
  readonly plans: PlanWatch
  readonly #parts: ForwarderParts

  /**
   * @param signal aborted at the end of a stop
   * @param failed a record can be stored nowhere: the process must stop
   */
  constructor(parts: ForwarderParts, signal: AbortSignal, failed: (error: unknown) => void) {
    this.#parts = parts
    const { log, metrics } = parts
    const events: GroupConsumerEvents = {
      wake: (partition) => this.scheduler.wake(partition),
      lost: () => this.#dropLost(),
      resumed: () => {
        this.limits.tick(steadyClock.now())
        this.pumpAll()
      },
      flush: () => this.flush(),
      offsetsLost: (...lost) => this.#offsetsLost(...lost),
    }
    this.publisher = new RecordPublisher(parts.sink, parts.maxRecordBytes, failed)
    const budget = new MemoryBudget(
      Math.max(minDeliveries, parts.maxInFlight * deliveriesPerSlot),
      maxBytesInFlight,
      (partition) => this.scheduler.wake(partition),
    )
    const written = { ...parts, publisher: this.publisher, budget }
    this.ledger = new Ledger({ ...written, topic: parts.topics.deliveries })
    this.calls = new GroupConsumer(parts.calls, events, this.ledger, log)
    this.retries = new GroupConsumer(parts.retries, events, this.ledger, log)
    this.limits = new DestinationLimits({
      ownedPartitions: () => this.calls.partitionCount,
      allPartitions: () => parts.callPartitions(),
      log,
    })
    this.settledVersion = new SettledVersion(this.ledger.codes, () => this.#unsettled())
    const erased = new Erased(parts.erasures)
    const suppressed = new Suppressed(parts.suppressions)
    const strictTopic = parts.topics.retry(strictTier.name)
    this.#order = new StrictOrder(
      {
        topic: strictTopic,
        committed: (partitions) => parts.retries.committed(partitions),
        endOffsets: (topics) => parts.endOffsets(topics),
        readParked: (...given) => parts.readParked(...given),
        resume: (active) => this.dispatcher.resume(active),
        log,
      },
      signal,
    )
    const settler = new Settler({
      ...written,
      ledger: this.ledger,
      erased,
      suppressed,
      destinationOf: (id) =>
        this.routing.destination(id) ?? { policy: parts.policy, metrics: metrics.destination(id) },
    })
    this.#settler = settler
    const reports = new AttemptReports({ ...parts, ledger: this.ledger })
    this.dispatcher = new Dispatcher(settler, reports, new Slots(parts.maxInFlight))
    this.routing = new Routing({
      endpoints: {
        dispatcher: this.dispatcher,
        budget,
        bounds: { ...parts.bounds, group: this.limits },
        reports,
        blocked: (endpoint) => this.headOfLineMonitor.check(endpoint, steadyClock.now()),
        stirred: (endpoint) => this.routing.stirred(endpoint),
        wake: (partition) => this.scheduler.wake(partition),
      },
      transport: parts.transport,
      metrics,
      openSecret: parts.openSecret,
      policy: parts.policy,
      order: this.#order,
      limitOf: (destination) => this.limits.limitOf(destination),
      failed: (destination, reason, about) =>
        log.error(
          { destination, reason, ...about },
          'a destination cannot be set up: its calls go to the retry tiers until it can',
        ),
      lacksTiers: (destination, missing, used) =>
        log.warn(
          { destination, missing, used: used.map(({ name }) => name) },
          'a destination’s retries go without tiers that RETRY_TIERS of this process does not have',
        ),
    })
    this.schemas = new SchemaLoader(log, signal)
    this.plans = new PlanWatch({ ...parts, ledger: this.ledger })
    const shared = {
      schemas: this.schemas,
      routing: this.routing,
      catchUp: new SettingsCatchUp(parts.settings, log, signal),
      dispatcher: this.dispatcher,
      settler,
      budget,
      suppressed,
    }
    const callPlanner = new CallPlanner({
      ...shared,
      decoder: parts.decoders.calls,
      ledger: this.ledger,
      conditions: new ConditionWatch((destinationId, slow) => {
        const reason = `its condition (--where) took more than ${maxEvaluationMs} ms for a call: change it`
        this.routing.holdForCondition(destinationId, reason, slow)
      }),
      filterFaults: new FilterFaults(log),
      plans: this.plans,
    })
    this.#retryPlanner = new RetryPlanner({
      ...shared,
      decoder: parts.decoders.retries,
      callDecoder: parts.decoders.calls,
      callsTopic: parts.topics.calls,
      readCalls: (partition, offsets) => parts.readCalls(partition, offsets),
      policy: parts.policy,
      tierDelayMs: (topic) => parts.tierDelayMs(topic),
      erased,
      strictTopic,
    })
    const plannerOf = (partition: AssignedPartition): Planner =>
      partition.owner === this.calls ? callPlanner : this.#retryPlanner
    this.scheduler = new PartitionScheduler(
      plannerOf,
      (partition) => budget.wait(partition),
      () => this.dispatcher.slots.countWaiting(),
    )
    this.headOfLineMonitor = new HeadOfLineMonitor({
      routing: this.routing,
      dispatcher: this.dispatcher,
      plannerOf,
      log,
      waitingForBudget: () => budget.waiting,
      isStalled: () => this.calls.isStalled || this.retries.isStalled,
    })
    this.lag = new Lag([this.calls, this.retries], (topics) => parts.endOffsets(topics))
  }

  /** Publishes all that is to be published. Resolves once the broker has it. */
  flush(): Promise<void> {
    this.#settler.flush()
    return this.publisher.settled()
  }

  /** Queues that were not allowed to start anything, or found no slot, may be now. */
  pumpAll(): void {
    const now = steadyClock.now()
    for (const endpoint of this.routing.stirring) if (endpoint.queued > 0) endpoint.pump(now)
  }

  /** After partitions were lost: their queued attempts are not sent. */
  #dropLost(): void {
    for (const endpoint of this.routing.endpoints()) endpoint.dropLost()
    this.#order.dropLost()
    this.#retryPlanner.parked.dropLost()
  }

  *#unsettled(): Iterable<AssignedPartition> {
    yield* this.calls.unsettled()
    yield* this.retries.unsettled()
  }

  /** To be called whenever the settings have changed. */
  applySettings(): void {
    const { state } = this.#parts.settings
    this.routing.apply(state)
    this.plans.apply(state)
    this.settledVersion.applied(state.version)
    for (const consumer of [this.calls, this.retries]) {
      for (const partition of consumer.partitions()) {
        // A head that waits was planned with settings that have passed.
        partition.head = null
        if (partition.block?.kind !== 'endpoint') continue
        partition.block.endpoint.waiters.delete(partition)
        this.scheduler.wake(partition)
      }
    }
  }

  *gone(): Iterable<{ destinationId: string; urlId: string }> {
    for (const { id: destinationId, enabled, urls } of this.#parts.settings.state.destinations.values()) {
      if (!enabled) continue
      for (const { id: urlId, goneAt } of urls) if (goneAt !== null) yield { destinationId, urlId }
    }
  }

  *certificates(): Iterable<WatchedCertificate> {
    for (const { id: destinationId, enabled, login } of this.#parts.settings.state.destinations.values()) {
      if (!enabled || login === noLogin) continue
      for (const [of, sealed] of [['client', login.clientCert] as const, ['ca', login.ca] as const]) {
        const ends = (sealed?.certificates ?? []).map(({ expiresAt }) => expiresAt)
        if (ends.length > 0) yield { destinationId, of, expiresAt: Math.min(...ends) }
      }
    }
  }

  *waiting(): Iterable<WaitingRecord> {
    const now = Date.now()
    yield* waitingRecords(this.calls.partitions(), null, now)
    yield* waitingRecords(this.retries.partitions(), (topic) => this.#parts.tierDelayMs(topic), now)
  }

  #offsetsLost({ topic, partition }: TopicPartition, first: number, last: number, why: string): void {
    const { log, metrics } = this.#parts
    const count = last - first + 1
    metrics.lostOffsets(topic, count)
    log.error({ topic, partition, first, last, count }, `lost ${first}..${last}: ${why}`)
    this.ledger.lost({ topic, partition }, first, last, why)
  }
}
