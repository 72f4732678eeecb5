import type { AnalyticsCall } from './analytics-call.ts'
import { dropTree, pathKeys, withoutPaths, type DropTree } from '../json/drop-paths.ts'

export const maxDropPaths = 50
export const maxDropPathLength = 500
const maxKeys = 20

const mapFields = ['properties', 'traits', 'context'] as const
/** Absent from many a body anyway. What says which call it is, and whose, stays. */
const textFields = ['anonymousId', 'name', 'category'] as const
type Droppable = (typeof mapFields)[number] | (typeof textFields)[number]

/** What a destination does not get of a call. */
export interface Redaction {
  /** What is dropped whole. */
  fields: readonly Droppable[]
  within: readonly { field: (typeof mapFields)[number]; tree: DropTree }[]
}

/** What is wrong with a list of paths, one phrase a fault. */
export function dropFaults(paths: readonly string[]): string[] {
  const faults: string[] = []
  if (paths.length === 0) faults.push('at least one path is needed')
  if (paths.length > maxDropPaths)
    faults.push(`${paths.length} paths are given, at most ${maxDropPaths} are allowed`)
  const spelled = paths.map((path) => JSON.stringify(pathKeys(path)))
  paths.forEach((path, index) => {
    const fault = pathFault(path)
    if (fault !== null) faults.push(`path ${index + 1}${fault}`)
    else if (spelled.indexOf(spelled[index]!) < index)
      faults.push(`path ${JSON.stringify(path)} is named twice`)
  })
  return faults
}

function pathFault(path: string): string | null {
  if (path.length > maxDropPathLength)
    return ` is ${path.length} characters long, at most ${maxDropPathLength} are allowed`
  const keys = pathKeys(path)
  const named = `, ${JSON.stringify(path)},`
  if (keys === null)
    return `${named} is not keys with dots between them; a key with a dot goes in double quotes: properties."a.b"`
  if (keys.length > maxKeys) return `${named} has ${keys.length} keys, at most ${maxKeys} are allowed`
  const [field] = keys as [string]
  if (isMapField(field)) return null
  if (!isTextField(field)) return `${named} begins with none of ${[...mapFields, ...textFields].join(', ')}`
  return keys.length === 1 ? null : `${named} goes into ${field}, which is a text`
}

/** Null where nothing is dropped. What is no path, which no command would have written, throws. */
export function redactionOf(paths: readonly string[] | null): Redaction | null {
  if (paths === null || paths.length === 0) return null
  const split = paths.map((path) => {
    if (pathFault(path) !== null) throw new Error('what stands as a path to drop is none')
    return pathKeys(path) as [Droppable, ...string[]]
  })
  const fields = split.flatMap(([field, ...keys]) => (keys.length === 0 ? [field] : []))
  const within = mapFields.flatMap((field) => {
    const below = split.filter(([first, ...keys]) => first === field && keys.length > 0)
    if (below.length === 0 || fields.includes(field)) return []
    return [{ field, tree: dropTree(below.map(([, ...keys]) => keys)) }]
  })
  return { fields, within }
}

/** The call without it. Its maps must be canonical, as `checkCall` makes them, and are so again. */
export function redacted(call: AnalyticsCall, { fields, within }: Redaction): AnalyticsCall {
  // A delete holds only whose data must go, and when.
  if (call.type === 'delete') return call
  const left = { ...call }
  for (const field of fields) left[field] = null
  for (const { field, tree } of within) {
    const text = call[field]
    if (text !== null) left[field] = withoutPaths(text, tree)
  }
  return left
}

const isMapField = (field: string): boolean => (mapFields as readonly string[]).includes(field)
const isTextField = (field: string): boolean => (textFields as readonly string[]).includes(field)
