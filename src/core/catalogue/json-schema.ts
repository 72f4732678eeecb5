import type { redactionOf } from '../call/redaction.ts'
import type { DropTree } from '../json/drop-paths.ts'
import type { CallType } from '../call/analytics-call.ts'
import { shapeMaps, type FieldKind, type PathStep, type ShapeMap } from './call-shape.ts'
import type { EventKey, SeenEvent, SeenField } from './event-fold.ts'

export type DocumentObject = { [keyword: string]: unknown }

/** The fields of an event, each within the one that holds it. */
export interface FieldTree {
  seen: SeenField
  members: Map<string, FieldTree>
  items: FieldTree | null
  /** Of all keys that are data. */
  others: FieldTree | null
}

const stringForms: readonly FieldKind[] = ['date-time', 'date', 'email', 'uuid']

/** By map; in the order of their names, whichever call came first. */
export function fieldTrees({ fields }: Pick<SeenEvent, 'fields'>): Partial<Record<ShapeMap, FieldTree>> {
  const root = leaf({ calls: 0, kinds: {} })
  // An outer path is shorter, and so before what lies within it.
  const steps = Array.from(fields, ([path, seen]) => ({ steps: JSON.parse(path) as PathStep[], path, seen }))
  steps.sort((a, b) => a.steps.length - b.steps.length || (a.path < b.path ? -1 : 1))
  for (const { steps: all, seen } of steps) {
    const within = all.slice(0, -1).reduce<FieldTree | null>((tree, step) => tree && below(tree, step), root)
    const last = all.at(-1)!
    if (!within) continue
    if (last === 0) within.items = leaf(seen)
    else if (last === null) within.others = leaf(seen)
    else within.members.set(last, leaf(seen))
  }
  return Object.fromEntries(root.members)
}

const leaf = (seen: SeenField): FieldTree => ({ seen, members: new Map(), items: null, others: null })

const below = (tree: FieldTree, step: PathStep): FieldTree | null =>
  step === 0 ? tree.items : step === null ? tree.others : (tree.members.get(step) ?? null)

/** Without what a destination does not get. As in a call's body, a path through an array goes through its elements. */
export function withoutDropped(tree: FieldTree, dropped: DropTree): FieldTree {
  const members = new Map<string, FieldTree>()
  for (const [key, member] of tree.members) {
    const drop = dropped.get(key)
    if (drop === undefined) members.set(key, member)
    else if (drop !== null) members.set(key, withoutDropped(member, drop))
  }
  return { ...tree, members, items: tree.items && withoutDropped(tree.items, dropped) }
}

/**
 * What was seen, as a schema. A member is required where every object had it; within arrays and behind keys that are data,
 * where that is not known, none is.
 *
 * @param objects how many objects there were: for the maps of a body, which are always there, more than were seen
 */
export function schemaOfField(tree: FieldTree, objects: number | null = objectsOf(tree)): DocumentObject {
  const { seen, members, items, others } = tree
  const schema: DocumentObject = typesOf(seen)
  if (members.size > 0) {
    const isWithinArray = objects === null
    schema.properties = Object.fromEntries(
      Array.from(members, ([key, member]) => [
        key,
        schemaOfField(member, isWithinArray ? null : objectsOf(member)),
      ]),
    )
    const required = [...members].flatMap(([key, { seen }]) => (seen.calls === objects ? [key] : []))
    if (required.length > 0) schema.required = required
  }
  if (items) schema.items = schemaOfField(items, null)
  if (others) schema.additionalProperties = schemaOfField(others, null)
  return schema
}

const objectsOf = ({ seen }: FieldTree): number => seen.kinds.object ?? 0

function typesOf({ kinds }: SeenField): DocumentObject {
  const seen = Object.keys(kinds) as FieldKind[]
  const forms = seen.filter((kind) => stringForms.includes(kind))
  const types = new Set<string>(seen.map((kind) => (stringForms.includes(kind) ? 'string' : kind)))
  if (types.has('number')) types.delete('integer')
  const type = [...types].sort()
  const schema: DocumentObject = { type: type.length === 1 ? type[0] : type }
  if (forms.length === 1 && !seen.includes('string')) schema.format = forms[0]
  return schema
}

/** Where the name of an event stands in its calls. */
export const nameFieldOf = (type: CallType): 'event' | 'name' => (type === 'track' ? 'event' : 'name')

/** A call of the event as it is sent to a collector. */
function callSchema({ type, name }: EventKey, event: SeenEvent): DocumentObject {
  const trees = fieldTrees(event)
  const maps = shapeMaps.flatMap((map) => (trees[map] ? [[map, trees[map]] as const] : []))
  const required = maps.flatMap(([map, { seen }]) => (seen.calls === event.calls ? [map] : []))
  return {
    title: titleOf({ type, name }),
    type: 'object',
    properties: {
      type: { const: type },
      ...(name !== null && { [nameFieldOf(type)]: { const: name } }),
      ...Object.fromEntries(maps.map(([map, tree]) => [map, schemaOfField(tree)])),
    },
    required: ['type', ...(name !== null ? [nameFieldOf(type)] : []), ...required],
  }
}

export const titleOf = ({ type, name }: EventKey): string => (name === null ? type : `${type} ${name}`)

/** @param since ISO; null: of all calls that are kept */
export function eventsSchema(
  sourceName: string,
  events: readonly (EventKey & { event: SeenEvent })[],
  since: string | null,
): DocumentObject {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `Events of ${sourceName}`,
    description: `What was seen${since === null ? '' : ` since ${since}`}, one schema an event.`,
    ...(events.length === 0
      ? { not: {} }
      : { anyOf: events.map(({ event, ...key }) => callSchema(key, event)) }),
  }
}

/** What a redaction leaves of the map of a body; null where all of it goes. */
export function redactedTree(
  map: ShapeMap,
  tree: FieldTree,
  redaction: ReturnType<typeof redactionOf>,
): FieldTree | null {
  if (redaction === null) return tree
  if (redaction.fields.includes(map)) return null
  const dropped = redaction.within.find(({ field }) => field === map)
  return dropped ? withoutDropped(tree, dropped.tree) : tree
}
