// In-memory stand-ins for the forwarder's ports. Whatever talks to a real Kafka or a real receiver is tested under
// test/pipeline and test/faults.
import { defaultBreakerLimits, type BreakerLimits } from '../../src/core/pacing/breaker.ts'
import type { Unrenderable } from '../../src/core/shape/text-template.ts'
import type { DeferralReason, RetryPolicy } from '../../src/core/delivery/disposition.ts'
import type { PaceBounds } from '../../src/core/pacing/endpoint-pace.ts'
import type { Outcome } from '../../src/core/delivery/outcome.ts'
import { wholeGroup } from '../../src/core/pacing/destination-limit.ts'
import { defaultTrickle } from '../../src/core/pacing/limits.ts'
import type { BudgetBounds } from '../../src/core/pacing/retry-budget.ts'
import { ResultCodes } from '../../src/core/ledger/result-codes.ts'
import type { PartitionTally, TallySink } from '../../src/forwarder/commit/committer.ts'
import {
  ActiveDelivery,
  type Attempt,
  type DeliverySettler,
  type DispatchReports,
} from '../../src/forwarder/send/active-delivery.ts'
import { DestinationRuntime } from '../../src/forwarder/plan/destination-runtime.ts'
import { Dispatcher } from '../../src/forwarder/send/dispatcher.ts'
import { EndpointQueue, type EndpointParts } from '../../src/forwarder/send/endpoint-queue.ts'
import { AssignedPartition, type PartitionOwner } from '../../src/forwarder/consume/assigned-partition.ts'
import { StrictOrder } from '../../src/forwarder/send/strict-order.ts'
import { Slots, type Window } from '../../src/forwarder/send/slots.ts'
import { steadyClock } from '../../src/forwarder/steady-clock.ts'
import type {
  CommittedPartition,
  FetchedRecord,
  FetchedRecords,
  PartitionCommit,
  RecordListener,
  RecordSource,
  TopicPartition,
} from '../../src/forwarder/consume/record-source.ts'
import type { DestinationMetrics, ForwarderMetrics } from '../../src/forwarder/metrics.ts'
import type { ErasureSource, SuppressionSource } from '../../src/forwarder/plan/planner.ts'
import type { SignedRequest } from '../../src/forwarder/send/signed-request.ts'
import type {
  AttemptSink,
  EndpointClient,
  EndpointLogin,
} from '../../src/forwarder/send/webhook-transport.ts'
import type { EncodedRecord } from '../../src/forwarder/settle/record-publisher.ts'

export const outcome = (kind: Outcome['kind'], given: Partial<Outcome> = {}): Outcome => ({
  kind,
  status: kind === 'success' ? 200 : kind === 'status_5xx' ? 503 : null,
  retryAfterMs: null,
  body: null,
  durationMs: 1,
  detail: null,
  ...given,
})

export const record = (offset: number, key = 'u-1', value = 'value'): FetchedRecord => ({
  offset,
  key: Buffer.from(key),
  value: Buffer.from(value),
  timestamp: null,
  isStampedByBroker: false,
  problem: null,
  header: () => null,
})

/** What one fetch brought. */
export const fetched = (records: readonly FetchedRecord[]): FetchedRecords => ({
  length: records.length,
  bytes: records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0),
  offsetAt: (index) => records[index]!.offset,
  at: (index) => records[index]!,
})

/** A record in a block of its own; whatever a test makes its bytes. */
export function encoded(value: string | Buffer): EncodedRecord {
  const block = Buffer.from(value)
  return { block, start: 0, end: block.length }
}

export const textOf = ({ block, start, end }: EncodedRecord): string => block.toString('utf8', start, end)

export const quiet = { info() {}, warn() {}, error() {} }

export const noMetrics: DestinationMetrics = {
  attempt() {},
  deferral() {},
  disposition() {},
  deadLetter() {},
  filtered() {},
  released() {},
}

export const noForwarderMetrics: ForwarderMetrics = {
  destination: () => noMetrics,
  retryScheduled() {},
  retryLateness() {},
  lostOffsets() {},
  planViolations() {},
  produced() {},
  watch() {},
}

/** Bounds of an endpoint: `inFlight` at once, from the start and at most. */
export const paceBounds = (
  inFlight: number,
  given: { maxWaitMs?: number; breaker?: Partial<BreakerLimits>; budget?: Partial<BudgetBounds> } = {},
): PaceBounds => ({
  breaker: { ...defaultBreakerLimits, ...given.breaker },
  limit: { min: 1, start: inFlight, max: inFlight },
  budget: { share: 1, ...defaultTrickle, ...given.budget },
  maxWaitMs: given.maxWaitMs ?? 2_000,
  returnDelaysMs: [10_000, 30_000],
  group: wholeGroup,
})
/** A schedule, as a deployment's. */
export const somePolicy: RetryPolicy = {
  tiers: [
    { name: '10s', delayMs: 10_000 },
    { name: '30s', delayMs: 30_000 },
  ],
  windowMs: 4 * 3_600_000,
}
/** Strict order where nothing that is parked is ever seen to have ended. */
const orderWith = (resume: (active: ActiveDelivery) => void) =>
  new StrictOrder(
    {
      topic: 'strict',
      committed: () => Promise.resolve([]),
      endOffsets: () => Promise.resolve([]),
      readParked: () => Promise.resolve(),
      resume,
      log: { warn: () => {} },
    },
    new AbortController().signal,
  )
/** No call waits for an earlier one. */
export const noOrder = orderWith(() => {})
/** Nobody was erased. */
export const noErasures: ErasureSource = { isEmpty: true, covers: () => false, pending: () => null }
/** Nobody is suppressed. */
export const noSuppressions: SuppressionSource = { isEmpty: true, covers: () => false, pending: () => null }

/** A login whose token the test has, or has not. */
export class FakeLogin implements EndpointLogin {
  isReady = false
  problem: string | null = null
  begun = 0
  #listener: (() => void) | null = null

  begin(): void {
    this.begun++
  }

  onChange(listener: () => void): void {
    this.#listener = listener
  }

  forget(): void {
    this.#listener = null
  }

  become(problem: string | null): void {
    this.isReady = problem === null
    this.problem = problem
    this.#listener?.()
  }
}

/** A receiver's connections: requests stay on the wire until the test answers them. */
export class FakeClient implements EndpointClient {
  readonly onWire: { request: SignedRequest; sink: AttemptSink }[] = []
  /** Ids of all that was ever sent, in order. */
  readonly sent: string[] = []
  closed = false
  login: EndpointLogin | null = null
  /** Thrown at the next send. */
  fault: Error | null = null

  /** What its URL has no value for. */
  lacks: Unrenderable | null = null

  lacking(): Unrenderable | null {
    return this.lacks
  }

  send(request: SignedRequest, sink: AttemptSink): void {
    if (this.fault) {
      const { fault } = this
      this.fault = null
      throw fault
    }
    this.sent.push(request.idempotencyKey!)
    this.onWire.push({ request, sink })
  }

  close(): void {
    this.closed = true
  }

  /** The connection of a request is there at last: it goes out, or is taken back. */
  connected(id: string): void {
    const index = this.onWire.findIndex((one) => one.request.idempotencyKey === id)
    const [one] = this.onWire.splice(index, 1)
    if (!one!.sink.withdraw!()) this.onWire.splice(index, 0, one!)
  }

  /** The oldest request on the wire, or the one with that id, ends. */
  answer(kind: Outcome['kind'], id?: string, given: Partial<Outcome> = {}): void {
    const index = id === undefined ? 0 : this.onWire.findIndex((one) => one.request.idempotencyKey === id)
    const [ended] = this.onWire.splice(index, 1)
    if (!ended) throw new Error(`nothing on the wire${id === undefined ? '' : ` with id ${id}`}`)
    ended.sink.onOutcome(outcome(kind, given))
  }
}

export class FakeOwner implements PartitionOwner {
  owner = 'member/1'
  fresh = true
  rejoining = false

  isFresh(): boolean {
    return this.fresh
  }

  mayStart(): boolean {
    return this.fresh && !this.rejoining
  }

  finished(): void {}

  waits(): void {}
}

/** Holds nothing back, however busy the process is. */
export const wideOpen: Window = { size: Infinity, answered() {}, turned: () => false }

/** A dispatcher with destinations whose endpoints are fake, and a book of what became of each run. */
export class Engine {
  readonly dispatcher: Dispatcher
  readonly destinations = new Map<string, DestinationRuntime>()
  readonly clients = new Map<string, FakeClient>()
  readonly endpoints: EndpointQueue[] = []
  readonly owner = new FakeOwner()
  readonly settled: ActiveDelivery[] = []
  readonly skipped: ActiveDelivery[] = []
  /** Of paused destinations. */
  readonly onHold: ActiveDelivery[] = []
  readonly parked: ActiveDelivery[] = []
  /** Ids of retries that must not be sent any more. */
  readonly revoked = new Set<string>()
  /** Ids of retries whose window has ended. */
  readonly expired = new Set<string>()
  readonly failed: { delivery: ActiveDelivery; error: unknown }[] = []
  readonly abandoned: ActiveDelivery[] = []
  readonly attempted: { attempt: Attempt; outcome: Outcome }[] = []
  /** Before an attempt is noted. */
  atAttempt: (attempt: Attempt) => void = () => {}
  readonly lateStarts: ActiveDelivery[] = []
  sentAgain = 0
  /** How many calls each had. */
  readonly refusedBatches: number[] = []
  /** Why there was no token, and null for that there was one again. */
  readonly logins: (string | null)[] = []
  readonly deferrals: DeferralReason[] = []
  readonly woken: AssignedPartition[] = []
  readonly #parts: EndpointParts
  #offset = 0

  constructor(
    given: { inFlight?: number; places?: number; window?: Window } & Parameters<typeof paceBounds>[1] = {},
    maxInFlight = 1_000,
  ) {
    const settler: DeliverySettler = {
      finish: (delivery) => void this.settled.push(delivery),
      settle: (delivery) => void this.settled.push(delivery),
      skip: (delivery) => void this.skipped.push(delivery),
      hold: (delivery) => void this.onHold.push(delivery),
      park: (delivery) => {
        this.parked.push(delivery)
        delivery.destination.order!.park(delivery)
      },
      isRevoked: ({ delivery }) => this.revoked.has(delivery.id),
      isExpired: ({ delivery }) => this.expired.has(delivery.id),
      fail: (delivery, error) => void this.failed.push({ delivery, error }),
      abandon: (delivery) => void this.abandoned.push(delivery),
    }
    const reports: DispatchReports = {
      deferred: (_, reason) => void this.deferrals.push(reason),
      attempted: (attempt, result) => {
        this.atAttempt(attempt)
        this.attempted.push({ attempt, outcome: result })
      },
    }
    this.dispatcher = new Dispatcher(settler, reports, new Slots(maxInFlight, given.window ?? wideOpen))
    this.#parts = {
      dispatcher: this.dispatcher,
      budget: { shareCount: given.places ?? 100, shareBytes: Infinity },
      bounds: paceBounds(given.inFlight ?? 4, given),
      reports: {
        retryStarted: (delivery) => void this.lateStarts.push(delivery),
        breakerChanged: () => {},
        sentAgain: () => void this.sentAgain++,
        batchRefused: ({ attempts }) => void this.refusedBatches.push(attempts.length),
        loginChanged: (_, problem) => void this.logins.push(problem),
      },
      blocked: () => {},
      stirred: () => {},
      wake: (partition) => void this.woken.push(partition),
    }
  }

  /** What the forwarder does now and then. */
  pumpAll(): void {
    const now = steadyClock.now()
    for (const endpoint of this.endpoints) if (endpoint.queued > 0) endpoint.pump(now)
  }

  /** For destinations with strict order. */
  order(): StrictOrder {
    return orderWith((active) => this.dispatcher.resume(active))
  }

  /** What the forwarder does after partitions were lost. */
  dropLost(): void {
    for (const endpoint of this.endpoints) endpoint.dropLost()
  }

  partition(id = 0, topic = 'calls'): AssignedPartition {
    return new AssignedPartition(topic, id, this.owner)
  }

  destination(id: string, urls = 1): DestinationRuntime {
    const runtime = new DestinationRuntime(id, noMetrics, somePolicy)
    runtime.endpoints = Array.from({ length: urls }, (_, index) => this.endpoint(id, `u${index + 1}`))
    this.destinations.set(id, runtime)
    return runtime
  }

  endpoint(destinationId: string, id: string): EndpointQueue {
    const client = new FakeClient()
    this.clients.set(`${destinationId}/${id}`, client)
    const queue = new EndpointQueue(destinationId, id, this.#parts)
    queue.use({ webhook: { url: '', headers: {} }, client })
    this.endpoints.push(queue)
    return queue
  }

  client(destinationId: string, id = 'u1'): FakeClient {
    return this.clients.get(`${destinationId}/${id}`)!
  }

  /** A run of a record that was taken from the partition just now. */
  newDelivery(
    id: string,
    destination: DestinationRuntime,
    given: {
      partition?: AssignedPartition
      key?: string | null
      retry?: string[]
      /** Of the retry, before this round. */
      attempts?: number
      dueAt?: number
    } = {},
  ): ActiveDelivery {
    const partition = given.partition ?? this.partition()
    const offset = Math.max(this.#offset++, partition.tracker.lastAdded + 1)
    partition.push({ records: fetched([record(offset)]), from: offset, to: offset + 1 })
    const work = partition.next()
    const body = Buffer.from(id)
    const delivery = {
      id,
      messageId: id,
      sourceId: 's',
      destinationId: destination.id,
      userIds: ['u-1'],
      type: 'track' as const,
      body,
      filled: null,
      endpointIds: given.retry ?? destination.endpointIds,
      attempts: given.retry ? (given.attempts ?? 1) : 0,
      timesScheduled: given.retry ? 1 : 0,
      firstAttemptAt: given.retry && given.attempts !== 0 ? 1 : null,
      firstScheduledAt: given.retry ? 2 : null,
      notBefore: null,
      outcomes: [],
      lastResponse: null,
      lastExchange: null,
      origin: { topic: 'calls', partition: 0, offset, appendedAt: 1 },
    }
    return new ActiveDelivery(
      delivery,
      work,
      destination,
      destination.endpoints.filter((endpoint) => delivery.endpointIds.includes(endpoint.id)),
      given.key === undefined ? id : given.key,
      given.dueAt ?? (given.retry ? Date.now() : null),
      steadyClock.now(),
    )
  }

  admit(...given: Parameters<Engine['newDelivery']>): ActiveDelivery {
    const delivery = this.newDelivery(...given)
    this.dispatcher.admit(delivery)
    return delivery
  }

  /** What is taken anywhere: nothing, once all is over. */
  held(): Record<string, number> {
    const sum = (of: (endpoint: EndpointQueue) => number) =>
      this.endpoints.reduce((total, endpoint) => total + of(endpoint), 0)
    return {
      dispatcherInFlight: this.dispatcher.inFlight,
      dispatcherAdmitted: this.dispatcher.admitted,
      endpointInFlight: sum((endpoint) => endpoint.inFlight),
      endpointCalls: sum((endpoint) => endpoint.admission.calls),
      endpointRetries: sum((endpoint) => endpoint.admission.retries),
      queued: sum((endpoint) => endpoint.queued),
    }
  }
}

export const nothingHeld: Record<string, number> = {
  dispatcherInFlight: 0,
  dispatcherAdmitted: 0,
  endpointInFlight: 0,
  endpointCalls: 0,
  endpointRetries: 0,
  queued: 0,
}

/** A ledger that keeps its tallies, and reports them to a test before it acknowledges. */
export class FakeTallies implements TallySink {
  readonly codes = new ResultCodes()
  readonly tallied: PartitionTally[] = []
  acknowledges: () => Promise<void> = () => Promise.resolve()

  constructor() {
    this.codes.code('crm', 'delivered')
  }

  tally(tallies: readonly PartitionTally[]): Promise<void> {
    this.tallied.push(...tallies)
    return this.acknowledges()
  }
}

/** What a delivery came to that tells of nothing else: the first code that there is. */
export const delivered = new ResultCodes().code('crm', 'delivered')

/** A consumer group's member whose broker is the test. */
export class FakeSource implements RecordSource {
  readonly groupId = 'group'
  readonly failed = new Promise<never>(() => {})
  readonly commits: PartitionCommit[][] = []
  readonly seeks: { partition: number; offset: number }[] = []
  readonly paused = new Set<number>()
  /** What `committed` answers; a test may make it wait or fail. */
  committedMap: () => Promise<Partial<CommittedPartition>[]> = () => Promise.resolve([])
  acknowledges: () => Promise<boolean> = () => Promise.resolve(true)

  fresh = true
  rejoining = false
  listener: RecordListener | null = null

  start(listener: RecordListener): Promise<void> {
    this.listener = listener
    return Promise.resolve()
  }

  async committed(partitions: readonly TopicPartition[]): Promise<CommittedPartition[]> {
    const found = await this.committedMap()
    return partitions.map(({ topic, partition }) => ({
      topic,
      partition,
      position: null,
      metadata: null,
      logStart: 0,
      ...found.find((entry) => (entry.partition ?? 0) === partition),
    }))
  }

  commit(commits: readonly PartitionCommit[]): Promise<boolean> {
    this.commits.push([...commits])
    return this.acknowledges()
  }

  pause({ partition }: TopicPartition): void {
    this.paused.add(partition)
  }

  resume({ partition }: TopicPartition): void {
    this.paused.delete(partition)
  }

  seek({ partition }: TopicPartition, offset: number): void {
    this.seeks.push({ partition, offset })
  }

  isFresh(): boolean {
    return this.fresh
  }

  mayStart(): boolean {
    return this.fresh && !this.rejoining
  }

  isReady(): boolean {
    return true
  }

  trouble(): string | null {
    return null
  }

  stop(): Promise<void> {
    return Promise.resolve()
  }
}
