import { callTypes, type AnalyticsCall, type CallType } from '../call/analytics-call.ts'
import { parseJson } from '../json/parse-json.ts'
import {
  checkedMaps,
  type CheckedMap,
  type EventRules,
  type JsonSchema,
  type PlanMode,
  type TrackingPlan,
} from './tracking-plan.ts'

/** What is wrong with a call, in words of its plan: never a value of the call, which may be anybody's. */
export interface Violation {
  /** The track event's name, or the type of the call. */
  event: string
  /** `properties.products.*.price`; empty where the event itself is the fault. */
  path: string
  /** The keyword of JSON Schema, or one of `ownRules`. */
  rule: string
}

/**
 * Rules beside the keywords of JSON Schema. `unknown_event`: the plan does not name it. `too_long`: the map's text is too
 * long to be checked. `unreadable`: it is nested too deeply. `too_slow`, `unusable`: the event's schemas are out of use until
 * the plan changes, because one took too long for a call, or cannot be read by this version.
 */
export const ownRules = ['unknown_event', 'too_long', 'unreadable', 'too_slow', 'unusable'] as const
type OwnRule = (typeof ownRules)[number]

/** A fault of a value by its schema: names of the schema, and `*` for whatever it does not name. */
export interface SchemaFault {
  path: readonly string[]
  rule: string
}

/** A schema that is ready to check values by. Returns a bounded number of faults, each once. */
export type SchemaCheck = (value: unknown) => readonly SchemaFault[]
/** Throws for a schema that cannot be used. */
export type CompileSchema = (schema: JsonSchema) => SchemaCheck

export type CheckableCall = Pick<AnalyticsCall, 'type' | 'event' | CheckedMap>

/** A map whose text is longer is not checked: a call from Kafka may have a megabyte. */
export const maxCheckedLength = 64 * 1_024
/** Of one call. */
export const maxViolations = 10
/** Of a name and a path as they are shown. */
const maxNameLength = 100
const maxPathLength = 200

const none: readonly Violation[] = []

interface FoundRules {
  event: string
  rules: EventRules
}

/**
 * Checks calls by one version of a plan. A schema is made ready when the first call needs it, so that a plan of many
 * events costs nothing at once. Maps are parsed only where the plan has a schema for them.
 */
export class PlanCheck {
  readonly plan: TrackingPlan
  readonly #compile: CompileSchema
  readonly #checks = new Map<EventRules, Partial<Record<CheckedMap, SchemaCheck>>>()
  readonly #outOfUse = new Map<EventRules, OwnRule>()

  constructor(plan: TrackingPlan, compile: CompileSchema) {
    this.plan = plan
    this.#compile = compile
  }

  /** What the plan says of such calls; null for nothing. */
  rulesFor({ type, event }: Pick<CheckableCall, 'type' | 'event'>): FoundRules | null {
    const { events } = this.plan
    // A name that is that of a type stands for calls of that type.
    const isNamed = type === 'track' && event !== null && !callTypes.includes(event as CallType)
    if (isNamed && Object.hasOwn(events, event)) return { event, rules: events[event]! }
    if (type === 'delete' || type === 'unknown' || !Object.hasOwn(events, type)) return null
    return { event: type === 'track' ? (event ?? type) : type, rules: events[type]! }
  }

  /** Throws where a schema of the plan cannot be used. */
  violations(call: CheckableCall): readonly Violation[] {
    const found = this.rulesFor(call)
    if (found === null) return this.#unknown(call)
    const { event, rules } = found
    const outOfUse = this.#outOfUse.get(rules)
    if (outOfUse) return [{ event: shortName(event), path: '', rule: outOfUse }]
    let violations: Violation[] | null = null
    for (const map of checkedMaps) {
      const schema = rules[map]
      if (schema === undefined) continue
      for (const { path, rule } of this.#faultsOf(rules, map, schema, call[map])) {
        violations ??= []
        if (violations.length < maxViolations)
          violations.push({
            event: shortName(event),
            path: cut([map, ...path].join('.'), maxPathLength),
            rule,
          })
      }
    }
    return violations ?? none
  }

  /** From now on such calls violate it by this rule, without a look at them. */
  putOutOfUse(call: CheckableCall, rule: 'too_slow' | 'unusable'): void {
    const found = this.rulesFor(call)
    if (found) this.#outOfUse.set(found.rules, rule)
  }

  #unknown({ type, event }: CheckableCall): readonly Violation[] {
    if (type !== 'track' || this.plan.unknownEvents === 'allow') return none
    return [{ event: shortName(event ?? type), path: '', rule: 'unknown_event' }]
  }

  #faultsOf(
    rules: EventRules,
    map: CheckedMap,
    schema: JsonSchema,
    text: string | null,
  ): readonly SchemaFault[] {
    if (text !== null && text.length > maxCheckedLength) return [{ path: [], rule: 'too_long' }]
    const check = this.#checkOf(rules, map, schema)
    try {
      // An absent map is an empty one, as in the body.
      return check(text === null ? {} : parseJson(text))
    } catch (error) {
      // The stack is used up, or it is not JSON, which other code has refused before.
      if (error instanceof RangeError || error instanceof SyntaxError)
        return [{ path: [], rule: 'unreadable' }]
      throw error
    }
  }

  #checkOf(rules: EventRules, map: CheckedMap, schema: JsonSchema): SchemaCheck {
    let its = this.#checks.get(rules)
    if (!its) this.#checks.set(rules, (its = {}))
    return (its[map] ??= this.#compile(schema))
  }
}

/**
 * Whether calls with these violations are kept back. What a plan does about unknown events can be less than its source's
 * mode, and never more.
 */
export function isBlocked(
  violations: readonly Violation[],
  mode: PlanMode,
  { unknownEvents }: Pick<TrackingPlan, 'unknownEvents'>,
): boolean {
  if (mode !== 'block' || violations.length === 0) return false
  return violations.some(({ rule }) => rule !== 'unknown_event' || unknownEvents === 'block')
}

/** The rest is left out. */
const cut = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)}…`

const shortName = (name: string): string => cut(name, maxNameLength)

/** In one line, for people. An event that the plan does not name is named by whoever sent it: it is `track` here. */
export function violationsText(
  { id, events }: Pick<TrackingPlan, 'id' | 'events'>,
  violations: readonly Violation[],
): string {
  const shown = violations.map(({ event, path, rule }) => {
    const name = Object.hasOwn(events, event) ? JSON.stringify(event) : 'track'
    return [name, path, rule].filter((part) => part !== '').join(' ')
  })
  return `plan ${id}: ${shown.join('; ')}`
}
