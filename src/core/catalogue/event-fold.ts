import type { AnalyticsCall, CallType } from '../call/analytics-call.ts'
import { maxEventNameLength } from '../call/filter.ts'
import { fieldKinds, maxFields, type CallShape, type FieldKind } from './call-shape.ts'

/** Which event a call is: its type, and the event of a track call or the name of a page or screen. */
export interface EventKey {
  type: CallType
  /** Null of the other types, and of a page without a name. */
  name: string | null
}

export interface SeenField {
  /** Calls that had it. */
  calls: number
  /** Calls in which it was of a kind; in an array it can be of several. */
  kinds: Partial<Record<FieldKind, number>>
}

/** What is known of one event. It holds no value of any call. */
export interface SeenEvent {
  calls: number
  /** When brokers got the first and the last one, epoch ms. */
  firstSeen: number
  lastSeen: number
  /** By path, as in `ShapeField`. */
  fields: Map<string, SeenField>
  /** Fields beyond the bound, one for each call that had it. */
  omittedFields: number
}

/** Calls of one event with one shape. */
export interface SeenCalls {
  calls: number
  firstSeen: number
  lastSeen: number
  shape: CallShape
}

/** Whether its name may be of one call alone (`/order/123`), and not of what many do. */
export const isNamedByPlace = (type: CallType): boolean => type === 'page' || type === 'screen'

/** Events of a type that are kept of a source: those of one type take nothing from another. */
export const maxEventsOf = (type: CallType): number => (isNamedByPlace(type) ? 500 : 2_000)

/** Null of a call that no destination can get, and of one whose name is too long to be one. */
export function eventKeyOf({
  type,
  event,
  name,
}: Pick<AnalyticsCall, 'type' | 'event' | 'name'>): EventKey | null {
  if (type === 'unknown' || (type === 'track' && !event)) return null
  const own = (type === 'track' ? event : type === 'page' || type === 'screen' ? name : null) || null
  return own !== null && own.length > maxEventNameLength ? null : { type, name: own }
}

export const noCalls = (): SeenEvent => ({
  calls: 0,
  firstSeen: Infinity,
  lastSeen: -Infinity,
  fields: new Map(),
  omittedFields: 0,
})

/** @param mayGrow false: only fields that are known already are counted by themselves */
export function addCalls(
  event: SeenEvent,
  { calls, firstSeen, lastSeen, shape }: SeenCalls,
  mayGrow = true,
): void {
  event.calls += calls
  event.firstSeen = Math.min(event.firstSeen, firstSeen)
  event.lastSeen = Math.max(event.lastSeen, lastSeen)
  event.omittedFields += shape.omitted * calls
  for (const { path, kinds } of shape.fields)
    addField(
      event,
      path,
      calls,
      kinds.map((kind) => [kind, calls]),
      mayGrow,
    )
}

/** Of the same event from several sources. */
export function mergeEvents(into: SeenEvent, other: SeenEvent): void {
  into.calls += other.calls
  into.firstSeen = Math.min(into.firstSeen, other.firstSeen)
  into.lastSeen = Math.max(into.lastSeen, other.lastSeen)
  into.omittedFields += other.omittedFields
  for (const [path, { calls, kinds }] of other.fields)
    addField(into, path, calls, Object.entries(kinds) as [FieldKind, number][])
}

function addField(
  event: SeenEvent,
  path: string,
  calls: number,
  kinds: readonly (readonly [FieldKind, number])[],
  mayGrow = true,
): void {
  let field = event.fields.get(path)
  if (!field) {
    if (!mayGrow || event.fields.size >= maxFields) {
      event.omittedFields += calls
      return
    }
    event.fields.set(path, (field = { calls: 0, kinds: {} }))
  }
  field.calls += calls
  for (const [kind, count] of kinds) field.kinds[kind] = (field.kinds[kind] ?? 0) + count
}

/** For a store: a list of `[path, calls, kind, count, kind, count …]`, kinds as positions in `fieldKinds`. */
export function fieldsText(fields: SeenEvent['fields']): string {
  return JSON.stringify(
    Array.from(fields, ([path, { calls, kinds }]) => [
      path,
      calls,
      ...Object.entries(kinds).flatMap(([kind, count]) => [fieldKinds.indexOf(kind as FieldKind), count]),
    ]),
  )
}

export function fieldsOfText(text: string): SeenEvent['fields'] {
  const rows = JSON.parse(text) as [path: string, calls: number, ...kinds: number[]][]
  return new Map(
    rows.map(([path, calls, ...rest]) => {
      const kinds: SeenField['kinds'] = {}
      for (let at = 0; at < rest.length; at += 2) kinds[fieldKinds[rest[at]!]!] = rest[at + 1]!
      return [path, { calls, kinds }]
    }),
  )
}
