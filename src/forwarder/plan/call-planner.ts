import { leftOutReasons, type LeftOut } from '../../core/call/filter.ts'
import { usersOf, type AnalyticsCall } from '../../core/call/analytics-call.ts'
import { checkCall, allowsWebhooks } from '../../core/call/check-call.ts'
import { canLieInRun } from '../../core/delivery/deferred-run.ts'
import type { Delivery, Origin } from '../../core/delivery/delivery.ts'
import { CallValues } from '../../core/expression/call-values.ts'
import { Unrenderable } from '../../core/shape/text-template.ts'
import type { NotPlannedReason, PlannedDestination, SkipReason } from '../../core/ledger/delivery-event.ts'
import { aboutDestination } from '../../core/call/built-in-source.ts'
import type { Ledger } from '../commit/ledger.ts'
import type { Block, AssignedPartition } from '../consume/assigned-partition.ts'
import type { FetchedRecord } from '../consume/record-source.ts'
import { ActiveDelivery } from '../send/active-delivery.ts'
import type { EndpointQueue } from '../send/endpoint-queue.ts'
import { steadyClock } from '../steady-clock.ts'
import type { Refused } from '../settle/settler.ts'
import type { CallPlace, ConditionWatch, FilterFaults } from './condition-watch.ts'
import type { DestinationRuntime } from './destination-runtime.ts'
import { findingsText, type PlanFindings, type PlanWatch } from './plan-watch.ts'
import {
  type RecordDecoder,
  Refusal,
  fullEndpoint,
  keyOf,
  refusalOf,
  deferralsOf,
  isRefusedByAll,
  requireReadable,
  type Planner,
  type PlannerParts,
} from './planner.ts'
import type { SourceRoute } from './routing.ts'

/** The plan of a record: its destinations. It is skipped when there are none. */
interface Plan {
  call: AnalyticsCall
  destinations: readonly DestinationRuntime[]
  /** Paused destinations: their deliveries are held. */
  held: readonly DestinationRuntime[]
  /** Destinations that do not get it by what they chose. */
  unwanted: readonly Unwanted[]
  /** Why it is skipped, where there are none of these. */
  skipReason: SkipReason
  /** What its source's tracking plan finds wrong with it. */
  findings: PlanFindings | null
}

interface PutOff {
  destination: DestinationRuntime
  refusal: Refused
}

const without = (
  destinations: readonly DestinationRuntime[],
  putOff: readonly PutOff[],
): readonly DestinationRuntime[] =>
  destinations.filter((destination) => !putOff.some((each) => each.destination === destination))

interface Unwanted extends LeftOut {
  destination: DestinationRuntime
}

export interface CallPlannerParts extends PlannerParts {
  decoder: RecordDecoder<AnalyticsCall>
  ledger: Ledger
  conditions: ConditionWatch
  filterFaults: FilterFaults
  plans: PlanWatch
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
      settler.deadRecord(partition.next(), record, reason, detail, this.#callIn(record))
      return null
    }
    if ('kind' in plan) return plan
    // Asked again of a head that had to wait: its user may have been suppressed meanwhile.
    const { call, findings } = plan
    const isWanted = plan.destinations.length > 0 || plan.held.length > 0 || findings?.isBlocked
    if (isWanted && this.#parts.suppressed.isCallSuppressed(call)) plan = nowhere(call, 'suppressed')
    else if (findings?.isBlocked) {
      const record = partition.peek()!
      this.#parts.plans.count(findings, call.messageId)
      settler.deadRecord(partition.next(), record, 'plan_violation', findingsText(findings), call)
      return null
    }
    for (const { order } of plan.destinations) {
      const pending = order?.pending(partition)
      if (!pending) continue
      partition.head = plan
      return { kind: 'pending', settled: pending }
    }
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

  endpointsOf({ value, offset, problem }: FetchedRecord, topic: string): readonly EndpointQueue[] {
    const decoded = problem === null ? this.#parts.decoder.tryDecode(value) : undefined
    if (decoded === undefined) return []
    const { call } = checkCall(decoded)
    const route = call && this.#routeOf(call)
    if (!call || !route?.enabled || !allowsWebhooks(call)) return []
    if (this.#parts.suppressed.isCallSuppressed(call)) return []
    const place = () => ({ topic, partition: null, offset })
    if (this.#parts.plans.findingsOf(call, place)?.isBlocked) return []
    return this.#chosenFor(call, route, place).destinations.flatMap((destination) => destination.endpoints)
  }

  /** The call of a record that becomes a dead letter; null when it cannot be read. */
  #callIn({ value, problem }: FetchedRecord): AnalyticsCall | null {
    try {
      return problem === null ? (this.#parts.decoder.tryDecode(value) ?? null) : null
    } catch {
      return null
    }
  }

  /** As if the destination that an operational event is about were none of the source's. */
  #routeOf(call: AnalyticsCall): SourceRoute | undefined {
    const route = this.#parts.routing.route(call.sourceId)
    if (!route?.isBuiltIn) return route
    const about = aboutDestination(call)
    return {
      ...route,
      destinations: route.destinations.filter(({ id }) => id !== about),
      held: route.held.filter(({ id }) => id !== about),
      disabled: route.disabled.filter((id) => id !== about),
    }
  }

  #plan(partition: AssignedPartition): Plan | Block {
    const { decoder, schemas, catchUp } = this.#parts
    const record = partition.peek()!
    requireReadable(record)
    const decoded = decoder.tryDecode(record.value)
    if (decoded === undefined) return schemas.load(decoder, partition)
    const { call, fault } = checkCall(decoded)
    if (fault !== null) throw new Refusal('invalid_call', fault)
    const route = this.#routeOf(call)
    if (!route) {
      // Decided only after catching up with the settings log's end: the source may just have been made.
      const pending = catchUp.since(partition.fetchedAt)
      if (pending) return { kind: 'pending', settled: pending }
      throw new Refusal('unknown_source', `there is no source ${JSON.stringify(call.sourceId.slice(0, 100))}`)
    }
    if (!route.enabled) return nowhere(call, 'source_disabled')
    const place = () => ({
      topic: partition.topic,
      partition: partition.partition,
      offset: partition.peek()!.offset,
    })
    const findings = this.#parts.plans.findingsOf(call, place)
    if (findings?.isBlocked || !allowsWebhooks(call)) return nowhere(call, 'integrations', findings)
    const skipReason = route.disabled.length > 0 ? 'destination_disabled' : 'no_destination'
    const { destinations, held } = route
    if (!route.filtered) return { call, destinations, held, unwanted: [], skipReason, findings }
    return { call, ...this.#chosenFor(call, route, place), skipReason, findings }
  }

  /** Which destinations of the source get the call, now or later; its maps are only parsed for a condition. */
  #chosenFor(
    call: AnalyticsCall,
    { destinations, held, filtered }: SourceRoute,
    place: () => CallPlace,
  ): Pick<Plan, 'destinations' | 'held' | 'unwanted'> {
    if (!filtered || call.type === 'unknown') return { destinations, held, unwanted: [] }
    let values: CallValues | null = null
    const valuesOf = () => (values ??= new CallValues(call))
    const unwanted: Unwanted[] = []
    const isChosen = (destination: DestinationRuntime) => {
      const leftOut = this.#parts.conditions.leftOutBy(destination, call, valuesOf, place)
      if (leftOut) unwanted.push({ destination, ...leftOut })
      return !leftOut
    }
    return { destinations: destinations.filter(isChosen), held: held.filter(isChosen), unwanted }
  }

  /** Has no closures: what they share would lie in memory rather than in registers, for each call. */
  #admit(partition: AssignedPartition, plan: Plan, now: number): void {
    const { call, destinations, held, unwanted, skipReason, findings } = plan
    const { dispatcher, settler, budget, ledger, plans } = this.#parts
    if (findings) plans.count(findings, call.messageId)
    const record = partition.peek()!
    const work = partition.next()
    if (ledger.everything) {
      ledger.planned(work, call, planOf(plan, this.#routeOf(call)))
    }
    work.remaining = destinations.length + held.length + unwanted.length
    if (work.remaining === 0) {
      work.remaining = 1
      settler.skipRecord(work, call, skipReason)
      return
    }
    const putOff = this.#putOff(call, destinations, now)
    const taken = putOff === null ? destinations : without(destinations, putOff)
    let made: (Made | Unrenderable)[]
    try {
      made = requestsFor(call, taken)
    } catch (error) {
      work.remaining = 1
      settler.deadRecord(work, record, 'internal_error', refusalOf(error).detail, call)
      return
    }
    for (const destination of held) settler.holdCall(work, call, destination)
    for (const { destination, reason, fault } of unwanted) {
      if (reason === 'filtered') this.#parts.filterFaults.filtered(destination, fault)
      settler.skipUnwanted(work, destination, reason)
    }
    if (putOff) for (const { destination, refusal } of putOff) settler.putOffCall(work, destination, refusal)
    if (taken.length === 0) return
    const key = keyOf(record.key)
    const userIds = usersOf(call)
    const origin = work.place
    for (let index = 0; index < taken.length; index++) {
      const destination = taken[index]!
      const its = made[index]!
      const delivery = newDelivery(call, userIds, destination, its, origin)
      if (its instanceof Unrenderable) {
        settler.unrenderable(work, key, delivery, its)
        continue
      }
      budget.reserve(its.body.length)
      dispatcher.admit(new ActiveDelivery(delivery, work, destination, destination.endpoints, key, null, now))
    }
  }

  /** For which of them the call is put off as it lies there, because no endpoint takes it: it needs no body yet. */
  #putOff(call: AnalyticsCall, destinations: readonly DestinationRuntime[], now: number): PutOff[] | null {
    let putOff: PutOff[] | null = null
    for (const destination of destinations) {
      const { endpoints } = destination
      if (destination.order || !canLieInRun(call) || !isRefusedByAll(endpoints, false, now)) continue
      const refusal = this.#parts.settler.refusalOf(destination, deferralsOf(endpoints, false, 1, now))
      if (refusal) (putOff ??= []).push({ destination, refusal })
    }
    return putOff
  }
}

const nowhere = (
  call: AnalyticsCall,
  skipReason: SkipReason,
  findings: PlanFindings | null = null,
): Plan => ({
  ...{ call, destinations: [], held: [], unwanted: [] },
  ...{ skipReason, findings },
})

const noOutcomes: Delivery['outcomes'] = []

function newDelivery(
  { messageId, sourceId, type }: AnalyticsCall,
  userIds: readonly string[],
  destination: DestinationRuntime,
  made: Made | Unrenderable,
  origin: Origin,
): Delivery {
  const { body, filled } = made instanceof Unrenderable ? nothing : made
  return {
    id: destination.deliveryId(messageId),
    messageId,
    sourceId,
    destinationId: destination.id,
    userIds,
    type: type as Exclude<typeof type, 'unknown'>,
    body,
    filled,
    endpointIds: destination.endpointIds,
    attempts: 0,
    timesScheduled: 0,
    firstAttemptAt: null,
    firstScheduledAt: null,
    notBefore: null,
    outcomes: noOutcomes,
    lastResponse: null,
    lastExchange: null,
    origin,
  }
}

type Made = Pick<Delivery, 'body' | 'filled'>
/** Of a delivery of which no request can be made. */
const nothing: Made = { body: Buffer.alloc(0), filled: null }

/** What each destination's request is made of, or why none can be; one for all that have nothing of their own. */
function requestsFor(
  call: AnalyticsCall,
  destinations: readonly DestinationRuntime[],
): (Made | Unrenderable)[] {
  let common: Made | Unrenderable | null = null
  return destinations.map((destination) => {
    const { isCommon } = destination.shape
    if (isCommon && common !== null) return common
    const made = destination.render(call, destination.deliveryId(call.messageId))
    if (isCommon) common = made
    return made
  })
}

/** Every destination of the call's source, with the delivery that is planned for it, or why there is none. */
function planOf(
  { call, destinations, held, unwanted, skipReason }: Plan,
  route: SourceRoute | undefined,
): PlannedDestination[] {
  const lines: PlannedDestination[] = [...destinations, ...held].map((destination) => ({
    destinationId: destination.id,
    deliveryId: destination.deliveryId(call.messageId),
    reason: null,
  }))
  const leaveOut = (ids: Iterable<string>, reason: NotPlannedReason) => {
    for (const destinationId of new Set(ids)) lines.push({ destinationId, deliveryId: null, reason })
  }
  const idsOf = (some: readonly DestinationRuntime[]) => some.map(({ id }) => id)
  for (const reason of leftOutReasons) {
    const its = unwanted.filter((each) => each.reason === reason)
    leaveOut(idsOf(its.map(({ destination }) => destination)), reason)
  }
  if (!route) return lines
  const enabled = idsOf([...route.destinations, ...route.held])
  if (!route.enabled) leaveOut([...enabled, ...route.disabled], 'source_disabled')
  else {
    if (!allowsWebhooks(call)) leaveOut(enabled, 'integrations')
    else if (skipReason === 'suppressed') leaveOut(enabled, 'suppressed')
    leaveOut(route.disabled, 'destination_disabled')
  }
  return lines
}
