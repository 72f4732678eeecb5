import { setTimeout as delay } from 'node:timers/promises'
import { isExpired, type RetryPolicy } from '../core/disposition.ts'
import type { PaceBounds } from '../core/endpoint-pace.ts'
import type { SecretPlace } from '../core/secret-place.ts'
import type { SealedSecret } from '../core/settings.ts'
import type { TopicNames } from '../core/topics.ts'
import { logBreaker, logFailedAttempt, type Log } from './attempt-log.ts'
import { CallsIntake } from './calls-intake.ts'
import { Consumption, type ConsumptionEvents } from './consumption.ts'
import { Dispatcher } from './dispatcher.ts'
import { Erased } from './erased.ts'
import { HandOver } from './hand-over.ts'
import { HoldBack } from './hold-back.ts'
import type { Intake } from './intake.ts'
import { Lag } from './lag.ts'
import { Ledger } from './ledger.ts'
import type { PartitionWork } from './partition-work.ts'
import type {
  Decoders,
  Encoders,
  ErasureSource,
  ForwarderMetrics,
  RecordSink,
  RecordSource,
  SettingsSource,
  TopicPartition,
  WebhookTransport,
} from './ports.ts'
import { RetriesIntake } from './retries-intake.ts'
import { Room } from './room.ts'
import { Routing } from './routing.ts'
import { SchemaLoader } from './schema-loader.ts'
import { SettingsCatchUp } from './settings-catch-up.ts'
import { Settler } from './settler.ts'
import { Slots } from './slots.ts'
import { steadyClock } from './steady-clock.ts'
import { Taker } from './taker.ts'

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
  /** The ledger tells of plain first-time deliveries too. */
  everything: boolean
  policy: RetryPolicy
  bounds: PaceBounds
  maxInFlight: number
  /** What retry and dead letter topics take (max.message.bytes). */
  maxRecordBytes: number
  /** How long a stop waits for what is on the wire and for hand-overs, in ms. */
  drainMs: number
  log: Log
}

/** Bodies of deliveries under way, hand-overs included. */
const maxBytesUnderWay = 64 * 1024 * 1024
/** With the tally that goes first, a commit is acknowledged within 100 ms of what it holds. */
const commitIntervalMs = 80
/** How long a stop waits for the last tally and commit in any case, in ms. */
const lastCommitMs = 1_000
const watchIntervalMs = 250
const lagIntervalMs = 5_000

/** analytics.calls and the retry tiers → signed POSTs (design.md, The forwarder's engine). */
export class Forwarder {
  readonly name = 'forwarder'
  readonly #parts: ForwarderParts
  readonly #stopping = new AbortController()
  readonly #calls: Consumption
  readonly #retries: Consumption
  readonly #routing: Routing
  readonly #dispatcher: Dispatcher
  readonly #settler: Settler
  readonly #ledger: Ledger
  readonly #handOver: HandOver
  readonly #room: Room
  readonly #taker: Taker
  readonly #holdBack: HoldBack
  readonly #lag: Lag
  readonly #schemas: SchemaLoader
  #failed: (error: unknown) => void = () => {}

  constructor(parts: ForwarderParts) {
    this.#parts = parts
    const { log, metrics } = parts
    const { signal } = this.#stopping
    const events: ConsumptionEvents = {
      wake: (partition) => this.#taker.wake(partition),
      lost: () => this.#dispatcher.dropLost(this.#routing.endpoints()),
      resumed: () => this.#dispatcher.pumpAll(this.#routing.endpoints()),
      flush: () => this.#handOver.settled(),
      offsetsLost: (partition, first, last) => this.#offsetsLost(partition, first, last),
    }
    this.#handOver = new HandOver(parts.sink, parts.maxRecordBytes, (error) => this.#failed(error))
    this.#room = new Room(Math.max(1_000, parts.maxInFlight * 10), maxBytesUnderWay, (partition) =>
      this.#taker.wake(partition),
    )
    const written = { ...parts, handOver: this.#handOver, room: this.#room }
    this.#ledger = new Ledger({ ...written, topic: parts.topics.deliveries })
    this.#calls = new Consumption(parts.calls, events, this.#ledger, log)
    this.#retries = new Consumption(parts.retries, events, this.#ledger, log)
    const erased = new Erased(parts.erasures)
    this.#settler = new Settler({ ...written, ledger: this.#ledger, erased })
    this.#dispatcher = new Dispatcher(
      {
        settled: (run) => this.#settler.settle(run),
        skipped: (run) => this.#settler.skip(run),
        isRevoked: (run) => erased.run(run),
        isExpired: (run) => run.earlier !== null && isExpired(run.earlier, Date.now(), parts.policy),
        failed: (run, error) => this.#settler.fail(run, error),
        attempted: (attempt, outcome) => {
          attempt.run.destination.metrics.attempt(outcome)
          this.#ledger.attempted(attempt, outcome)
          if (outcome.kind === 'success') return
          logFailedAttempt(log, attempt, outcome)
          if (outcome.kind === 'gone') parts.reportGone(attempt.endpoint.destinationId, attempt.endpoint.id)
        },
        deferred: (run, reason) => run.destination.metrics.deferral(reason),
        retryStarted: (run) => metrics.retryLateness(Math.max(0, Date.now() - run.dueAt!) / 1_000),
        abandoned: (run) => this.#room.free(run.body.length),
        breakerChanged: (endpoint, _from, to) => logBreaker(log, endpoint, to),
        blocked: (endpoint) => this.#holdBack.look(endpoint, steadyClock.now()),
        wake: (partition) => this.#taker.wake(partition),
      },
      new Slots(parts.maxInFlight),
      this.#room,
    )
    this.#routing = new Routing({
      host: this.#dispatcher,
      bounds: parts.bounds,
      transport: parts.transport,
      metrics,
      openSecret: (sealed, place) => parts.openSecret(sealed, place),
      removed: (endpoint) => this.#dispatcher.removed(endpoint),
      failed: (destination, reason) =>
        log.error(
          { destination, reason },
          'a destination cannot be set up: its calls go to the retry tiers until it can',
        ),
    })
    this.#schemas = new SchemaLoader(log, signal)
    const shared = {
      schemas: this.#schemas,
      routing: this.#routing,
      catchUp: new SettingsCatchUp(parts.settings, log, signal),
      dispatcher: this.#dispatcher,
      settler: this.#settler,
      ledger: this.#ledger,
      room: this.#room,
    }
    const callsIntake = new CallsIntake({ ...shared, decoder: parts.decoders.calls })
    const retriesIntake = new RetriesIntake({
      ...shared,
      decoder: parts.decoders.retries,
      policy: parts.policy,
      tierDelayMs: (topic) => parts.tierDelayMs(topic),
      erased,
    })
    const intakeOf = (partition: PartitionWork): Intake =>
      partition.owner === this.#calls ? callsIntake : retriesIntake
    this.#taker = new Taker(
      intakeOf,
      (partition) => this.#room.wait(partition),
      (partition) => partition.owner.finished(partition),
      () => this.#dispatcher.hasPlenty,
    )
    this.#holdBack = new HoldBack(
      this.#routing,
      this.#dispatcher,
      intakeOf,
      log,
      () => this.#room.waiting,
      () => this.#calls.isStalled || this.#retries.isStalled,
    )
    this.#lag = new Lag([this.#calls, this.#retries], (topics) => parts.endOffsets(topics))
    metrics.watch({
      inFlight: () => this.#dispatcher.inFlight,
      endpoints: () => this.#endpointGauges(),
      lag: () => this.#lag.read(),
      notSetUp: () => [...this.#routing.failures()].map(([destinationId]) => destinationId),
    })
  }

  /** Null when it takes work, else why not. */
  problem(): string | null {
    const [calls, retries] = [this.#calls, this.#retries]
    if (calls.trouble !== null) return `calls cannot be read: ${calls.trouble}`
    if (!calls.isReady) return 'not a member of the consumer group yet'
    if (retries.trouble !== null) return `retries cannot be read: ${retries.trouble}`
    if (!retries.isReady) return "not a member of the retries' consumer group yet"
    if (this.#schemas.isWaiting) return 'records wait for the schema registry'
    return this.#parts.sink.problem() ?? this.#ledger.problem(steadyClock.now())
  }

  /** What does not keep it from work, but should be known: in one line for people, or null. */
  warning(): string | null {
    const failures = [...this.#routing.failures()].map(([id, reason]) => `destination "${id}": ${reason}`)
    return failures.length === 0 ? null : `cannot be set up: ${failures.join('; ')}`
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
      this.#taker.stop()
      this.#dispatcher.stop()
      await Promise.all([calls.stop(), retries.stop()])
      for (const consumption of [this.#calls, this.#retries]) consumption.lost()
      await this.#parts.transport.close(0)
    }
  }

  /** Stop taking → finish what is on the wire → hand over → commit; leaving the group comes after. */
  async #drain(): Promise<void> {
    this.#taker.stop()
    this.#dispatcher.stop()
    const deadline = steadyClock.now() + this.#parts.drainMs
    while (this.#dispatcher.inFlight > 0 && steadyClock.now() < deadline) await delay(5)
    await Promise.race([
      this.#handOver.settled(),
      delay(Math.max(0, deadline - steadyClock.now()), undefined, { ref: false }),
    ])
    // While Kafka is away there is no last commit: what is not committed is sent again by whoever comes next.
    await Promise.race([
      Promise.all([this.#calls, this.#retries].map((consumption) => consumption.commitAll())),
      delay(Math.max(lastCommitMs, deadline - steadyClock.now()), undefined, { ref: false }),
    ])
    if (this.#dispatcher.inFlight > 0) {
      this.#parts.log.warn({ requests: this.#dispatcher.inFlight }, 'stopped before all requests had ended')
    }
  }

  #commitAll(): void {
    for (const consumption of [this.#calls, this.#retries]) {
      consumption.tick().catch((error: unknown) => this.#failed(error))
    }
  }

  #watch(): void {
    this.#holdBack.tick(steadyClock.now())
    // After a pause in the heartbeats nothing else would look at the queues again.
    this.#dispatcher.pumpAll(this.#routing.endpoints())
    this.#handOver.lookAgain()
  }

  #applySettings(): void {
    try {
      this.#routing.apply(this.#parts.settings.state)
    } catch (error) {
      this.#failed(error)
      return
    }
    for (const consumption of [this.#calls, this.#retries]) {
      for (const partition of consumption.partitions()) {
        // A head that waits was planned with settings that have passed.
        partition.head = null
        if (partition.block?.kind !== 'endpoint') continue
        partition.block.endpoint.waiters.delete(partition)
        this.#taker.wake(partition)
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

  *#endpointGauges() {
    const now = steadyClock.now()
    for (const endpoint of this.#routing.endpoints()) {
      const { destinationId, id: urlId, inFlight, limit, breaker } = endpoint
      const waits = now < breaker.until
      yield {
        destinationId,
        urlId,
        inFlight,
        limit,
        breakerOpen: breaker.phase === 'open' && waits,
        paused: breaker.phase === 'paused' && waits,
      }
    }
  }
}
