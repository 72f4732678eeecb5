import { callTypes, type AnalyticsCall, type CallType } from '../call/analytics-call.ts'
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

/**
 * A schema that is ready to check JSON by. Returns a bounded number of faults, each once. Throws as `parseJson` does for
 * what is not JSON, or nested too deeply.
 */
export type SchemaCheck = (json: string) => readonly SchemaFault[]
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

/** What the plan says of one event. */
interface PlannedEvent {
  readonly maps: readonly PlannedMap[]
  outOfUse: OwnRule | null
}

interface PlannedMap {
  readonly map: CheckedMap
  readonly schema: JsonSchema
  /** Null until a call needs it. */
  check: SchemaCheck | null
}

function plannedEvent(rules: EventRules): PlannedEvent {
  const maps = checkedMaps.flatMap((map) => {
    const schema = rules[map]
    return schema === undefined ? [] : [{ map, schema, check: null }]
  })
  return { maps, outOfUse: null }
}

/**
 * Checks calls by one version of a plan. A schema is made ready when the first call needs it, so that a plan of many
 * events costs nothing at once. Maps are read only where the plan has a schema for them.
 */
export class PlanCheck {
  readonly plan: TrackingPlan
  readonly #compile: CompileSchema
  /** A name that is that of a type stands for calls of that type. */
  readonly #byType = new Map<string, PlannedEvent>()
  readonly #byName = new Map<string, PlannedEvent>()

  constructor(plan: TrackingPlan, compile: CompileSchema) {
    this.plan = plan
    this.#compile = compile
    for (const [name, rules] of Object.entries(plan.events)) {
      const planned = callTypes.includes(name as CallType) ? this.#byType : this.#byName
      planned.set(name, plannedEvent(rules))
    }
  }

  /** What such a call is by the plan, where it says something of it. */
  eventOf(call: Pick<CheckableCall, 'type' | 'event'>): string | null {
    return this.#plannedFor(call) === undefined ? null : eventOf(call)
  }

  /** Throws where a schema of the plan cannot be used. */
  violations(call: CheckableCall): readonly Violation[] {
    const planned = this.#plannedFor(call)
    if (planned === undefined) return this.#unknown(call)
    if (planned.outOfUse !== null)
      return [{ event: shortName(eventOf(call)), path: '', rule: planned.outOfUse }]
    let violations: Violation[] | null = null
    for (const checked of planned.maps) {
      const { map } = checked
      for (const { path, rule } of this.#faultsOf(checked, call[map])) {
        violations ??= []
        if (violations.length < maxViolations)
          violations.push({
            event: shortName(eventOf(call)),
            path: cut([map, ...path].join('.'), maxPathLength),
            rule,
          })
      }
    }
    return violations ?? none
  }

  /** From now on such calls violate it by this rule, without a look at them. */
  putOutOfUse(call: CheckableCall, rule: 'too_slow' | 'unusable'): void {
    const planned = this.#plannedFor(call)
    if (planned) planned.outOfUse = rule
  }

  #plannedFor({ type, event }: Pick<CheckableCall, 'type' | 'event'>): PlannedEvent | undefined {
    const named = type === 'track' && event !== null ? this.#byName.get(event) : undefined
    if (named !== undefined || type === 'delete' || type === 'unknown') return named
    return this.#byType.get(type)
  }

  #unknown({ type, event }: CheckableCall): readonly Violation[] {
    if (type !== 'track' || this.plan.unknownEvents === 'allow') return none
    return [{ event: shortName(event ?? type), path: '', rule: 'unknown_event' }]
  }

  #faultsOf(checked: PlannedMap, text: string | null): readonly SchemaFault[] {
    if (text !== null && text.length > maxCheckedLength) return [{ path: [], rule: 'too_long' }]
    const check = (checked.check ??= this.#compile(checked.schema))
    try {
      // An absent map is an empty one, as in the body.
      return check(text ?? '{}')
    } catch (error) {
      // The stack is used up, or it is not JSON, which other code has refused before.
      if (error instanceof RangeError || error instanceof SyntaxError)
        return [{ path: [], rule: 'unreadable' }]
      throw error
    }
  }
}

const eventOf = ({ type, event }: Pick<CheckableCall, 'type' | 'event'>): string =>
  type === 'track' ? (event ?? type) : type

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
