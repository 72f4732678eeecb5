// The life of one copy of a call, put together from what the topics hold of it: `postrider why`.
import { leftOutReasons } from '../call/filter.ts'
import {
  deadLetterOf,
  nothingKnown,
  stateByTraces,
  unrecorded,
  type DeliveryLife,
  type Ended,
  type FinishOf,
} from './delivery-life.ts'
import { totalOf } from './tally.ts'
import {
  placeKey,
  type AttemptTrace,
  type DispositionTrace,
  type Finish,
  type PlanLine,
  type Place,
  type RetryTrace,
  type Trace,
} from './trace.ts'

/** A trace as it is shown: in the order of things. */
export type Step = (AttemptTrace | (DispositionTrace & { deadLetter: Place | null }) | RetryTrace) & {
  /** What a process did that ended before its work was committed: the record was worked on again. */
  repeat: boolean
}

export interface CopyFacts {
  place: Place
  /** `recorded`: by the ledger. `settings`: by those that were in force. */
  planBy: 'ledger' | 'settings' | null
  /** The plans that were in force one after another; one where it is certain. Empty: not known, or no such source. */
  plans: readonly (readonly PlanLine[])[]
  /** Of this copy. */
  traces: readonly Trace[]
  /** Of the copy's own record and of every record of a tier that its traces name. */
  finish: FinishOf
}

export interface CopyLife {
  plan: { by: 'ledger' | 'settings'; isCertain: boolean; lines: readonly PlanLine[] } | null
  steps: Step[]
  deliveries: DeliveryLife[]
  /** Of a record that came to no delivery; null of others. */
  record: Ended | null
}

export function lifeOf(facts: CopyFacts): CopyLife {
  const { place, planBy, traces, finish } = facts
  const isRepeat = repeats(traces, finish)
  const counted = traces.filter((trace) => !isRepeat(trace))
  const plans = plansOf(facts, counted)
  const deadLetters = traces.filter((trace) => trace.kind === 'dead_letter')
  const steps = traces
    .flatMap((trace): Step[] => {
      if (trace.kind === 'attempt') return [{ ...trace, repeat: isRepeat(trace) }]
      if (trace.kind === 'disposition')
        return [
          { ...trace, deadLetter: deadLetterOf(trace, deadLetters)?.place ?? null, repeat: isRepeat(trace) },
        ]
      // The disposition records what a forwarder scheduled in a tier.
      return trace.kind === 'retry' && trace.from === null ? [{ ...trace, repeat: false }] : []
    })
    .sort((a, b) => a.at - b.at || order(a) - order(b) || a.place.offset - b.place.offset)
  const lines = plans[0] ?? []
  const isCertain = plans.length === 1
  const ids = new Map<string, Pick<DeliveryLife, 'destinationId' | 'urlId'>>()
  const add = (destinationId: string, urlId: string | null) =>
    ids.set(JSON.stringify([destinationId, urlId]), { destinationId, urlId })
  for (const plan of plans)
    for (const { destinationId, urlId, reason } of plan) if (reason === null) add(destinationId, urlId)
  for (const trace of traces)
    if (trace.kind !== 'planned' && trace.destinationId !== null) add(trace.destinationId, trace.ofUrlId)
  for (const { destinationId, urlId } of finish(place).tally?.held ?? []) add(destinationId, urlId)
  const deliveries = [...ids.values()].map((id) => {
    const its = (trace: Trace) =>
      trace.kind !== 'planned' && trace.destinationId === id.destinationId && trace.ofUrlId === id.urlId
    const recorded = counted.filter(its)
    const inAll = plans.every((plan) =>
      plan.some((line) => line.reason === null && line.destinationId === id.destinationId),
    )
    return {
      ...id,
      ...(stateByTraces(recorded, finish) ?? unrecorded(id, finish(place), isCertain, inAll)),
    }
  })
  return {
    plan:
      planBy && plans.length > 0 ? { by: planBy, isCertain, lines: isCertain ? lines : union(plans) } : null,
    steps,
    deliveries,
    record: deliveries.length > 0 ? null : recordState(facts, isRepeat),
  }
}

/**
 * Those of the plans that go with what happened. A destination that a plan gives the call to has got it, or something
 * is told of it; one that a plan keeps it from has had nothing told of it, nor has it got every call of the tally. All
 * plans, where none goes with it.
 */
function supported(
  plans: CopyFacts['plans'],
  traces: readonly Trace[],
  { tally }: Finish,
): CopyFacts['plans'] {
  if (plans.length < 2) return plans
  const recorded = new Set([
    ...traces.flatMap((trace) =>
      trace.kind === 'planned' || trace.destinationId === null ? [] : [trace.destinationId],
    ),
    ...(tally?.held ?? []).map(({ destinationId }) => destinationId),
  ])
  const counts = new Map(tally?.counts.map((each) => [each.destinationId, each]))
  const given = new Set(recorded)
  for (const plan of plans)
    for (const [id, lines] of Map.groupBy(plan, ({ destinationId }) => destinationId)) {
      const its = counts.get(id)
      // Deliveries, a round from a tier counted like one; and calls that it did not choose.
      if (tally && tally.records > 0 && its && totalOf(its) >= tally.records * lines.length) given.add(id)
    }
  const left = plans.filter(
    (plan) =>
      [...given].every((id) => plan.some(({ destinationId }) => destinationId === id)) &&
      plan.every(({ destinationId: id, reason }) => {
        if (reason === null) return recorded.has(id) || !tally || (counts.get(id)?.delivered ?? 0) > 0
        if (recorded.has(id)) return false
        return leftOutReasons.some((each) => each === reason)
          ? !tally || (counts.get(id)?.skipped ?? 0) > 0
          : !given.has(id)
      }),
  )
  return left.length > 0 ? left : plans
}

function plansOf({ plans, place, finish }: CopyFacts, counted: readonly Trace[]): CopyFacts['plans'] {
  // It cannot be delivered: the settings would plan it all the same, and the tally counts deliveries of other calls.
  if (isUndeliverable(place, counted)) return []
  return isSuppressed(counted) ? withoutSuppressed(plans) : supported(plans, counted, finish(place))
}

/** The call's own record became a dead letter, before anything was planned; one of a tier may too. */
const isUndeliverable = (place: Place, traces: readonly Trace[]): boolean =>
  traces.some((trace) => {
    if (trace.kind === 'planned' || trace.destinationId !== null) return false
    if (trace.kind === 'dead_letter') return placeKey(trace.origin) === placeKey(place)
    return (
      trace.kind === 'disposition' &&
      trace.disposition === 'dead_lettered' &&
      placeKey(trace.of) === placeKey(place)
    )
  })

/** The record was skipped because its user is suppressed; a call that nobody would have got is not skipped for that. */
const isSuppressed = (traces: readonly Trace[]): boolean =>
  traces.some(
    (trace) => trace.kind === 'disposition' && trace.destinationId === null && trace.reason === 'suppressed',
  )

/** Those of the plans by which anybody would have got the call, with nobody who did. */
function withoutSuppressed(plans: CopyFacts['plans']): CopyFacts['plans'] {
  const giving = plans.filter((plan) => plan.some(({ reason }) => reason === null))
  return (giving.length > 0 ? giving : plans).map((plan) =>
    plan.map((line) => ({ ...line, reason: line.reason ?? 'suppressed' })),
  )
}

/** At one time an attempt comes before what it led to. */
const order = (step: Step): number => ['attempt', 'disposition', 'retry'].indexOf(step.kind)

/** A destination once, with every URL; where plans differ about it, as one that gets the call. */
function union(plans: CopyFacts['plans']): PlanLine[] {
  const lines = new Map<string, PlanLine>()
  for (const line of plans.flat()) {
    const key = JSON.stringify([line.destinationId, line.urlId])
    if (line.reason === null || !lines.has(key)) lines.set(key, line)
  }
  return [...lines.values()]
}

/**
 * Whether a trace is of work that no commit holds: the tally that is a fact names another owner of the record that was
 * worked on, or that record is itself what such work has led to.
 */
function repeats(traces: readonly Trace[], finish: FinishOf): (trace: Trace) => boolean {
  const retryAt = new Map(
    traces.flatMap((trace) => (trace.kind === 'retry' ? [[placeKey(trace.place), trace]] : [])),
  )
  const isStale = (from: Place | null, owner: string | null, depth = 0): boolean => {
    // A chain of tiers ends with the retry window; what goes round was not written by a forwarder.
    if (from === null || depth > 100) return false
    const fact = finish(from).tally
    if (fact && owner !== null && fact.owner !== owner) return true
    const retry = retryAt.get(placeKey(from))
    return retry ? isStale(retry.from, retry.owner, depth + 1) : false
  }
  return (trace) => {
    const from = trace.kind === 'retry' || trace.kind === 'dead_letter' ? trace.from : trace.of
    return isStale(from, trace.owner)
  }
}

function recordState(
  { traces, place, finish, plans }: CopyFacts,
  isRepeat: (trace: Trace) => boolean,
): Ended {
  const recorded = traces.filter(
    (trace) => (trace.kind === 'disposition' || trace.kind === 'dead_letter') && !isRepeat(trace),
  )
  const byTraces = stateByTraces(recorded, finish)
  if (byTraces) return byTraces
  const { finished, tally } = finish(place)
  if (!finished) return { ...nothingKnown, state: 'open' }
  // A record that becomes a dead letter or is erased is recorded: this one had no destination.
  if (tally && plans.length > 0) return { ...nothingKnown, state: 'skipped', at: tally.at, byTally: true }
  return { ...nothingKnown, state: 'unknown' }
}
