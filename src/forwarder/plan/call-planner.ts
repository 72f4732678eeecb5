import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { NotPlannedReason, PlannedDestination } from '../../core/ledger/delivery-event.ts'
import type { Delivery, Origin } from '../../core/delivery/delivery.ts'
import { renderBody } from '../../core/call/body.ts'
import { checkCall } from '../../core/call/check-call.ts'
import { allowsWebhooks } from '../../core/call/integrations.ts'
import { ActiveDelivery } from '../send/active-delivery.ts'
import type { DestinationRuntime } from './destination-runtime.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import { Refusal, fullEndpoint, keyOf, refusalOf, type Planner, type PlannerParts } from './planner.ts'
import type { Ledger } from '../commit/ledger.ts'
import type { Block, AssignedPartition } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import type { RecordDecoder } from './inputs.ts'
import type { SourceRoute } from './routing.ts'
import { steadyClock } from '../steady-clock.ts'

/** The plan of a record: its destinations. It is skipped when there are none. */
interface Plan {
  call: AnalyticsCall
  destinations: readonly DestinationRuntime[]
  /** Destinations that chose not to get it. */
  unwanted: readonly DestinationRuntime[]
}

export interface CallPlannerParts extends PlannerParts {
  decoder: RecordDecoder<AnalyticsCall>
  ledger: Ledger
}

/** Calls topic: decode → check → plan → render → one delivery per destination (docs/architecture.md). */
export class CallPlanner implements Planner {
  readonly #parts: CallPlannerParts

  constructor(parts: CallPlannerParts) {
    this.#parts = parts
  }

  planNext(partition: AssignedPartition): Block | null {
    const { budget, settler } = this.#parts
    if (budget.isFull) return { kind: 'full' }
    let plan: Plan | Block
    try {
      plan = (partition.head as Plan | null) ?? this.#plan(partition)
    } catch (error) {
      const record = partition.peek()!
      const { reason, detail } = refusalOf(error)
      settler.deadRecord(partition.next(), record, reason, detail, this.#callIn(record.value))
      return null
    }
    if ('kind' in plan) return plan
    const now = steadyClock.now()
    for (const destination of plan.destinations) {
      const full = fullEndpoint(destination.endpoints, false, now)
      if (full) {
        partition.head = plan
        return { kind: 'endpoint', endpoint: full }
      }
    }
    this.#admit(partition, plan, now)
    return null
  }

  endpointsOf({ value }: FetchedRecord): readonly EndpointQueue[] {
    const call = this.#parts.decoder.tryDecode(value)
    const route = call && this.#parts.routing.route(call.sourceId)
    if (!route?.enabled || !allowsWebhooks(call!)) return []
    return wanting(route, call!).flatMap((destination) => destination.endpoints)
  }

  /** The call of a record that becomes a dead letter; null when it cannot be read. */
  #callIn(value: Buffer | null): AnalyticsCall | null {
    try {
      return this.#parts.decoder.tryDecode(value) ?? null
    } catch {
      return null
    }
  }

  #plan(partition: AssignedPartition): Plan | Block {
    const { decoder, schemas, routing, catchUp } = this.#parts
    const { value } = partition.peek()!
    const decoded = decoder.tryDecode(value)
    if (decoded === undefined) return schemas.load(decoder, partition)
    const { call, fault } = checkCall(decoded)
    if (fault !== null) throw new Refusal('invalid_call', fault)
    const route = routing.route(call.sourceId)
    if (!route) {
      // Decided only after catching up with the settings log's end: the source may just have been made.
      const pending = catchUp.since(partition.fetchedAt)
      if (pending) return { kind: 'pending', settled: pending }
      throw new Refusal('unknown_source', `there is no source ${JSON.stringify(call.sourceId.slice(0, 100))}`)
    }
    if (!route.enabled || !allowsWebhooks(call)) return { call, destinations: [], unwanted: [] }
    if (!route.filtered) return { call, destinations: route.destinations, unwanted: [] }
    const destinations = wanting(route, call)
    return {
      call,
      destinations,
      unwanted: route.destinations.filter((destination) => !destinations.includes(destination)),
    }
  }

  #admit(partition: AssignedPartition, { call, destinations, unwanted }: Plan, now: number): void {
    const { dispatcher, settler, budget, ledger, routing } = this.#parts
    const record = partition.peek()!
    const work = partition.next()
    if (ledger.everything) {
      ledger.planned(work, call, planOf(call, destinations, unwanted, routing.route(call.sourceId)))
    }
    work.remaining = destinations.length + unwanted.length
    if (work.remaining === 0) {
      work.remaining = 1
      settler.skipRecord(work, call)
      return
    }
    let body: Buffer
    try {
      body = Buffer.from(renderBody(call))
    } catch (error) {
      work.remaining = 1
      settler.deadRecord(work, record, 'internal_error', refusalOf(error).detail, call)
      return
    }
    for (const destination of unwanted) settler.skipUnwanted(work, destination)
    const key = keyOf(record.key)
    const userIds = usersOf(call)
    const origin = work.place
    for (const destination of destinations) {
      const delivery = newDelivery(call, userIds, destination, body, origin)
      budget.reserve(body.length)
      dispatcher.admit(new ActiveDelivery(delivery, work, destination, destination.endpoints, key, null, now))
    }
  }
}

const noOutcomes: Delivery['outcomes'] = []

function newDelivery(
  { messageId, sourceId, type }: AnalyticsCall,
  userIds: readonly string[],
  destination: DestinationRuntime,
  body: Uint8Array,
  origin: Origin,
): Delivery {
  return {
    id: destination.deliveryId(messageId),
    messageId,
    sourceId,
    destinationId: destination.id,
    userIds,
    type: type as Exclude<typeof type, 'unknown'>,
    body,
    endpointIds: destination.endpointIds,
    attempts: 0,
    timesScheduled: 0,
    firstAttemptAt: null,
    firstScheduledAt: null,
    notBefore: null,
    outcomes: noOutcomes,
    lastResponse: null,
    origin,
  }
}

function wanting(
  { destinations, filtered }: SourceRoute,
  call: AnalyticsCall,
): readonly DestinationRuntime[] {
  if (!filtered) return destinations
  const { type, event } = call
  if (type === 'unknown') return destinations
  return destinations.filter(({ filter }) => filter === null || filter(type, event))
}

/** Every destination of the call's source, with the delivery that is planned for it, or why there is none. */
function planOf(
  call: AnalyticsCall,
  destinations: readonly DestinationRuntime[],
  unwanted: readonly DestinationRuntime[],
  route: SourceRoute | undefined,
): PlannedDestination[] {
  const lines: PlannedDestination[] = destinations.map((destination) => ({
    destinationId: destination.id,
    deliveryId: destination.deliveryId(call.messageId),
    reason: null,
  }))
  const leaveOut = (ids: Iterable<string>, reason: NotPlannedReason) => {
    for (const destinationId of new Set(ids)) lines.push({ destinationId, deliveryId: null, reason })
  }
  const idsOf = (some: readonly DestinationRuntime[]) => some.map(({ id }) => id)
  leaveOut(idsOf(unwanted), 'not_chosen')
  if (!route) return lines
  if (!route.enabled) leaveOut([...idsOf(route.destinations), ...route.disabled], 'source_disabled')
  else {
    if (!allowsWebhooks(call)) leaveOut(idsOf(route.destinations), 'integrations')
    leaveOut(route.disabled, 'destination_disabled')
  }
  return lines
}
