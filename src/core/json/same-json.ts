import { isRawJSON, plainNumber, rawJSON } from './json-number.ts'
import { parseJson } from './parse-json.ts'

/**
 * Whether two JSON texts say the same: members of objects in any order, numbers and strings in any spelling. Numbers
 * are compared by their digits, so also those that a double cannot hold. Texts that are nested thousands of levels
 * deep are the same only when they are spelt the same.
 */
export function sameJson(one: string, other: string): boolean {
  if (one === other) return true
  try {
    return plain(one) === plain(other)
  } catch (error) {
    // The stack is used up.
    if (error instanceof RangeError) return false
    throw error
  }
}

/** One spelling of what is the same. */
function plain(text: string): string {
  return JSON.stringify(
    parseJson(text, (source) => rawJSON(plainNumber(source))),
    sorted,
  )
}

/** Objects become lists of members, which cannot be taken for anything else: arrays stay arrays. */
function sorted(_key: string, value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value) || isRawJSON(value)) return value
  return { members: Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)) }
}
