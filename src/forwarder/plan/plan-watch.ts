import { MembershipCalls } from '../../core/audience/membership.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { SettingsState, Source } from '../../core/settings/settings.ts'
import {
  isBlocked,
  PlanCheck,
  violationsText,
  type CompileSchema,
  type Violation,
} from '../../core/tracking-plan/plan-check.ts'
import { trackingPlanOf, type TrackingPlan } from '../../core/tracking-plan/tracking-plan.ts'
import { messageOf } from '../../errors.ts'
import type { Ledger } from '../commit/ledger.ts'
import type { Log } from '../log.ts'
import type { ForwarderMetrics } from '../metrics.ts'
import { steadyClock } from '../steady-clock.ts'
import { leastCpuMs, maxEvaluationMs, type CallPlace } from './condition-watch.ts'
import type { ViolationCount } from '../../core/ledger/delivery-event.ts'

/** Violations that are told apart between two reports; the rest of a source's are counted as `other`. */
const maxKeys = 200
/** Calls that are named for each: the newest, the newest first. */
const maxSamples = 10

/** Whose calls violate which plan, and what is done about it. */
type CheckedBy = Pick<ViolationCount, 'sourceId' | 'planId' | 'mode'>

/** Counts violations between two reports, in bounded memory whatever senders write. */
export class ViolationCounts {
  #counts = new Map<string, ViolationCount>()

  get isEmpty(): boolean {
    return this.#counts.size === 0
  }

  /** @param now epoch ms */
  add(by: CheckedBy, violations: readonly Violation[], messageId: string, now: number): void {
    for (const violation of violations) {
      const count = this.#countOf(by, violation)
      count.count++
      count.lastAt = Math.max(count.lastAt, now)
      const { messageIds } = count
      if (messageIds[0] !== messageId) messageIds.unshift(messageId)
      if (messageIds.length > maxSamples) messageIds.pop()
    }
  }

  /** What was counted since the last call. */
  take(): ViolationCount[] {
    const taken = [...this.#counts.values()]
    this.#counts = new Map()
    return taken
  }

  #countOf(by: CheckedBy, violation: Violation): ViolationCount {
    const key = keyOf(by, violation)
    const known = this.#counts.get(key)
    if (known) return known
    const isOther = this.#counts.size >= maxKeys && violation.rule !== 'other'
    if (isOther) return this.#countOf(by, { event: 'other', path: '', rule: 'other' })
    const made = { ...by, ...violation, count: 0, lastAt: 0, messageIds: [] }
    this.#counts.set(key, made)
    return made
  }
}

const keyOf = ({ sourceId, planId, mode }: CheckedBy, { event, path, rule }: Violation): string =>
  JSON.stringify([sourceId, planId, mode, event, path, rule])

/** How often violations are reported at most, in ms. */
const reportMs = 1_000

/** What is wrong with a call by the plan of its source. */
export interface PlanFindings {
  plan: TrackingPlan
  by: CheckedBy
  violations: readonly Violation[]
  /** The call is to become a dead letter. */
  isBlocked: boolean
}

/** For people: names of the plan, and nothing of the call. */
export const findingsText = ({ plan, violations }: PlanFindings): string => violationsText(plan, violations)

export interface PlanWatchParts {
  compileSchema: CompileSchema
  ledger: Pick<Ledger, 'planViolations'>
  metrics: Pick<ForwarderMetrics, 'planViolations'>
  log: Pick<Log, 'error'>
}

interface CheckedSource {
  source: Source
  check: PlanCheck
  notifications: MembershipCalls
  by: CheckedBy
}

/**
 * Checks calls by the tracking plans of their sources, finds the plans that take too long, and reports violations. What
 * was counted and not reported when a process dies is lost, and what it had planned and not committed is counted again.
 */
export class PlanWatch {
  readonly #parts: PlanWatchParts
  /** By source; those without a plan are not in it. */
  #sources: ReadonlyMap<string, CheckedSource> = new Map()
  /** By plan, of its present version: a schema is made ready once. */
  #checks: ReadonlyMap<string, PlanCheck> = new Map()
  readonly #counts = new ViolationCounts()
  #reportedAt = -Infinity

  constructor(parts: PlanWatchParts) {
    this.#parts = parts
  }

  /** To be called whenever the settings have changed. */
  apply(state: Pick<SettingsState, 'sources' | 'plans' | 'computations'>): void {
    const sources = new Map<string, CheckedSource>()
    const checks = new Map<string, PlanCheck>()
    for (const source of state.sources.values()) {
      const plan = source.plan === null ? undefined : trackingPlanOf(state, source.plan)
      if (!plan) continue
      let check = checks.get(plan.id) ?? this.#checks.get(plan.id)
      if (check?.plan !== plan) check = new PlanCheck(plan, this.#parts.compileSchema)
      checks.set(plan.id, check)
      const notifying = [...state.computations.values()].filter(({ sourceId }) => sourceId === source.id)
      sources.set(source.id, {
        source,
        check,
        notifications: new MembershipCalls(notifying),
        by: { sourceId: source.id, planId: plan.id, mode: source.planMode },
      })
    }
    this.#sources = sources
    this.#checks = checks
  }

  /** Null for a call that violates nothing, and for one that is not checked. */
  findingsOf(call: AnalyticsCall, place: () => CallPlace): PlanFindings | null {
    const found = this.#sources.get(call.sourceId)
    if (!found || call.type === 'delete' || found.notifications.has(call)) return null
    const { by, check } = found
    const violations = this.#violations(call, found, place)
    if (violations.length === 0) return null
    return { plan: check.plan, by, violations, isBlocked: isBlocked(violations, by.mode, check.plan) }
  }

  /** Once for each call, when it is settled that it goes on, or does not. */
  count({ by, violations }: PlanFindings, messageId: string): void {
    this.#counts.add(by, violations, messageId, Date.now())
    this.#parts.metrics.planViolations(by.sourceId, by.mode, violations.length)
  }

  /** Reports what was counted, at most once a second; `isLast`: in any case. */
  report(isLast = false): void {
    const now = steadyClock.now()
    if (this.#counts.isEmpty || (!isLast && now - this.#reportedAt < reportMs)) return
    this.#reportedAt = now
    this.#parts.ledger.planViolations(this.#counts.take())
  }

  #violations(
    call: AnalyticsCall,
    { check, by }: CheckedSource,
    place: () => CallPlace,
  ): readonly Violation[] {
    const begin = steadyClock.now()
    let violations: readonly Violation[]
    try {
      violations = check.violations(call)
    } catch (error) {
      return this.#putOutOfUse(check, call, 'unusable', {
        plan: by.planId,
        event: check.eventOf(call),
        reason: messageOf(error),
      })
    }
    if (steadyClock.now() - begin <= maxEvaluationMs) return violations
    // By now its schemas are ready: making them so may have taken longer.
    const cpuMs = leastCpuMs(() => void check.violations(call))
    if (cpuMs <= maxEvaluationMs) return violations
    return this.#putOutOfUse(check, call, 'too_slow', {
      plan: by.planId,
      event: check.eventOf(call),
      messageId: call.messageId,
      ...place(),
      cpuMs: Math.round(cpuMs),
    })
  }

  #putOutOfUse(
    check: PlanCheck,
    call: AnalyticsCall,
    rule: 'too_slow' | 'unusable',
    about: object,
  ): readonly Violation[] {
    check.putOutOfUse(call, rule)
    const why = rule === 'too_slow' ? `takes more than ${maxEvaluationMs} ms for a call` : 'cannot be used'
    this.#parts.log.error(
      about,
      `an event of a tracking plan ${why}: its calls violate it until it is changed`,
    )
    return check.violations(call)
  }
}
