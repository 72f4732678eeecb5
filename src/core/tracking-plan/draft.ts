import { callTypes, type AnalyticsCall, type CallType } from '../call/analytics-call.ts'
import { parseJson } from '../json/parse-json.ts'
import { maxCheckedLength } from './plan-check.ts'
import { maxEventLength, maxEvents, maxPlanBytes } from './plan-rules.ts'
import {
  checkedMaps,
  type CheckedMap,
  type EventRules,
  type JsonSchema,
  type TrackingPlan,
} from './tracking-plan.ts'

/** Levels of objects and lists that are described. */
const maxDepth = 6
/** An object with more names is a map of something by its id: its names are not described. */
const maxNames = 100
const maxNameLength = 200
/** A draft is edited, and must still fit then. */
const maxDraftBytes = (maxPlanBytes * 3) / 4

type JsonType = 'string' | 'number' | 'boolean' | 'null' | 'object' | 'array'

function typeOf(value: unknown): JsonType {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'array'
  return typeof value as JsonType
}

/** What values at one place looked like. */
class Shape {
  readonly #types = new Set<JsonType>()
  #objects = 0
  /** By name, with the number of objects that have it; null where there are too many. */
  #names: Map<string, { shape: Shape; count: number }> | null = new Map()
  #items: Shape | null = null

  add(value: unknown, depth = 0): void {
    const type = typeOf(value)
    this.#types.add(type)
    if (depth === maxDepth) return
    if (type === 'array') {
      this.#items ??= new Shape()
      for (const item of value as unknown[]) this.#items.add(item, depth + 1)
    } else if (type === 'object') this.#addObject(value as object, depth)
  }

  #addObject(value: object, depth: number): void {
    this.#objects++
    for (const [name, each] of Object.entries(value)) {
      if (this.#names === null) return
      let known = this.#names.get(name)
      if (!known) {
        if (this.#names.size === maxNames || name.length > maxNameLength) {
          this.#names = null
          return
        }
        this.#names.set(name, (known = { shape: new Shape(), count: 0 }))
      }
      known.count++
      known.shape.add(each, depth + 1)
    }
  }

  schema(): JsonSchema {
    const types = [...this.#types].sort()
    const items = this.#items?.schema()
    const required = [...(this.#names ?? [])]
      .filter(([, { count }]) => count === this.#objects)
      .map(([name]) => name)
    const properties = [...(this.#names ?? [])].map(([name, { shape }]) => [name, shape.schema()] as const)
    return {
      ...(types.length > 0 && { type: types.length === 1 ? types[0]! : types }),
      ...(required.length > 0 && { required }),
      ...(properties.length > 0 && { properties: Object.fromEntries(properties) }),
      ...(items !== undefined && Object.keys(items).length > 0 && { items }),
    }
  }
}

/** Without `context`, which is much, and the same for most events. */
const usualMaps: readonly CheckedMap[] = ['properties', 'traits']

interface DraftedEvent {
  calls: number
  /** In the order of the draft's maps. */
  shapes: readonly Shape[]
}

/** What a draft was made from. */
export interface DraftFacts {
  /** Calls that it describes. */
  calls: number
  /** Calls that are too long or too deep, or of an event that it has no room for. */
  omitted: number
}

/**
 * A plan that the calls which it was made from do not violate: of each property the types that it had, required where it
 * was always there.
 */
export class PlanDraft {
  readonly #maps: readonly CheckedMap[]
  readonly #events = new Map<string, DraftedEvent>()
  #omitted = 0

  constructor({ hasContext = false }: { hasContext?: boolean } = {}) {
    this.#maps = hasContext ? checkedMaps : usualMaps
  }

  add(call: Pick<AnalyticsCall, 'type' | 'event' | CheckedMap>): void {
    const { type, event } = call
    if (type === 'delete' || type === 'unknown') return
    const isNamed = type === 'track' && event !== null && !callTypes.includes(event as CallType)
    const key = isNamed ? event : type
    const values = valuesOf(call, this.#maps)
    if (values === null || !this.#hasRoomFor(key)) {
      this.#omitted++
      return
    }
    let drafted = this.#events.get(key)
    if (!drafted) {
      drafted = { calls: 0, shapes: this.#maps.map(() => new Shape()) }
      this.#events.set(key, drafted)
    }
    drafted.calls++
    for (const [index, shape] of drafted.shapes.entries()) shape.add(values[index])
  }

  /** Events with most calls first. */
  plan(): Pick<TrackingPlan, 'events' | 'unknownEvents'> & DraftFacts {
    const events: Record<string, EventRules> = {}
    let [bytes, calls, omitted] = [0, 0, this.#omitted]
    for (const [name, { calls: its, shapes }] of [...this.#events].sort(
      ([, a], [, b]) => b.calls - a.calls,
    )) {
      const described = this.#maps.flatMap((map, index) => {
        const schema = shapes[index]!.schema()
        return typeof schema === 'object' && 'properties' in schema ? [[map, schema] as const] : []
      })
      const rules = Object.fromEntries(described)
      const size = new TextEncoder().encode(JSON.stringify([name, rules])).length
      if (bytes + size > maxDraftBytes) omitted += its
      else {
        bytes += size
        calls += its
        Object.defineProperty(events, name, { value: rules, enumerable: true })
      }
    }
    // An event that is not described is no fault of its calls.
    return { events, unknownEvents: omitted > 0 ? 'allow' : 'report', calls, omitted }
  }

  #hasRoomFor(name: string): boolean {
    if (this.#events.has(name)) return true
    return this.#events.size < maxEvents && name.length <= maxEventLength && !/\p{Cc}/u.test(name)
  }
}

/** One for each map; null where the call would not be checked. */
function valuesOf(
  call: Pick<AnalyticsCall, CheckedMap>,
  maps: readonly CheckedMap[],
): readonly unknown[] | null {
  try {
    return maps.map((map) => {
      const text = call[map]
      if (text !== null && text.length > maxCheckedLength) throw new RangeError('it is too long')
      return text === null ? {} : parseJson(text)
    })
  } catch {
    return null
  }
}
