import { eachElement, eachMember, keyOf, stringOf } from './json-members.ts'
import { spaceEnd, stringEnd } from './json-object.ts'

const [quote, openBrace, openBracket] = [0x22, 0x7b, 0x5b]
/** Each level is read once more for it. */
const maxNestedArrays = 20

/** What to leave out below a value: `null` for a key whose whole member goes. */
export type DropTree = ReadonlyMap<string, DropTree | null>

/**
 * The keys of a path, from the outside in: `context.ip`, and `properties."a.b"` for a key with a dot, in the quotes of
 * JSON. Null for what is no path.
 */
export function pathKeys(path: string): string[] | null {
  const keys: string[] = []
  for (let at = 0; ; at++) {
    let end: number
    if (path.charCodeAt(at) === quote) {
      end = stringEnd(path, at)
      if (end < 0) return null
      keys.push(stringOf(path.slice(at, end)))
    } else {
      const dot = path.indexOf('.', at)
      end = dot < 0 ? path.length : dot
      const key = path.slice(at, end)
      if (key === '' || key.includes('"') || key.trim() !== key) return null
      keys.push(key)
    }
    if (end === path.length) return keys
    if (path[end] !== '.') return null
    at = end
  }
}

/** One tree of several paths. A path within another one adds nothing. */
export function dropTree(paths: readonly (readonly string[])[]): DropTree {
  const root = new Map<string, Map<string, unknown> | null>()
  for (const keys of paths) {
    let node: Map<string, unknown> | null = root
    keys.forEach((key, index) => {
      if (node === null) return
      if (index === keys.length - 1) node.set(key, null)
      else if (!node.has(key)) node.set(key, new Map())
      node = node.get(key) as Map<string, unknown> | null
    })
  }
  return root as DropTree
}

/**
 * The JSON text without what the tree names; the same text where there is nothing of it. All other values keep their
 * spelling, so also numbers that a double cannot hold. A path through an array goes through each of its elements; what
 * lies deeper than 20 arrays within each other goes too, unread. Where a key comes twice, both go.
 */
export function withoutPaths(text: string, tree: DropTree): string {
  // What is nested too deep to be made canonical may begin with space.
  return rest(text, spaceEnd(text, 0), text.length, tree, 0)
}

/** Of the value from `start` to `end`. */
function rest(text: string, start: number, end: number, tree: DropTree, arrays: number): string {
  const first = text.charCodeAt(start)
  if (first === openBrace) return objectRest(text, start, end, tree)
  if (first !== openBracket) return text.slice(start, end)
  if (arrays === maxNestedArrays) return '[]'
  const parts: string[] = []
  eachElement(text, start, (from, to) => void parts.push(rest(text, from, to, tree, arrays + 1)))
  return `[${parts.join(',')}]`
}

function objectRest(text: string, start: number, end: number, tree: DropTree): string {
  const parts: string[] = []
  let isWhole = true
  eachMember(text, start, (keyStart, keyEnd, from, to) => {
    const below = tree.get(keyOf(text, keyStart, keyEnd))
    if (below === undefined) parts.push(text.slice(keyStart, to))
    else {
      isWhole = false
      if (below !== null) parts.push(`${text.slice(keyStart, from)}${rest(text, from, to, below, 0)}`)
    }
  })
  return isWhole ? text.slice(start, end) : `{${parts.join(',')}}`
}
