import { eachElement, eachMember, keyOf, stringOf } from './json-members.ts'
import { spaceEnd, stringEnd, valueEnd } from './json-object.ts'

const [quote, colon, openBrace, openBracket] = [0x22, 0x3a, 0x7b, 0x5b]

/** What a number becomes, by its text. */
export type NumberOf = (source: string) => unknown

/**
 * What JSON.parse gives. A text with an escape in a key is read here: V8 can take such a key for another one that has a
 * backslash and stood at the same place in an earlier text, which may have been anybody's (nodejs/node#63785; Node 24
 * and 26). So is one whose numbers become something else: a reviver would take ten times as long for a long text.
 * Throws a SyntaxError for what is not JSON, and a RangeError for what is read here and nested thousands deep.
 */
export function parseJson(text: string, numberOf?: NumberOf): unknown {
  const value: unknown = JSON.parse(text)
  return numberOf || hasEscapedKey(text) ? read(text, numberOf ?? Number) : value
}

/** Of a text that is JSON. */
export function hasEscapedKey(text: string): boolean {
  if (!text.includes('\\')) return false
  for (let at = text.indexOf('"'); at >= 0; at = text.indexOf('"', at)) {
    const end = stringEnd(text, at)
    if (end < 0) return false
    if (text.charCodeAt(spaceEnd(text, end)) === colon && text.slice(at, end).includes('\\')) return true
    at = end
  }
  return false
}

/** Of a text that is JSON. */
function read(text: string, numberOf: NumberOf): unknown {
  let value: unknown
  /** Sets `value` to what begins at `at`, and gives the position behind it. */
  const readAt = (text: string, at: number): number => {
    const first = text.charCodeAt(at)
    let end: number
    if (first === openBrace) {
      const members: [string, unknown][] = []
      end = eachMember(text, at, (from, to) => void members.push([keyOf(text, from, to), value]), readAt)
      // Each key becomes a member of its own, `__proto__` too.
      value = Object.fromEntries(members)
    } else if (first === openBracket) {
      const items: unknown[] = []
      end = eachElement(text, at, () => void items.push(value), readAt)
      value = items
    } else {
      end = valueEnd(text, at)
      value = scalarOf(text.slice(at, end), first, numberOf)
    }
    return end
  }
  readAt(text, spaceEnd(text, 0))
  return value
}

/** Of JSON that is no object and no list; `first`: the code of its first character. */
export function scalarOf(source: string, first: number, numberOf: NumberOf): unknown {
  if (first === quote) return stringOf(source)
  return source === 'true' ? true : source === 'false' ? false : source === 'null' ? null : numberOf(source)
}

/** An object of JSON, not a list. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawJSON(value)

/** Text that JSON.stringify puts out as it is (TypeScript does not know it yet). */
export const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): unknown
  isRawJSON(value: unknown): boolean
}

/** Whether what JSON.stringify writes for the number is the same number. `-0` is 0. */
export function isExact(number: string): boolean {
  const value = Number(number)
  if (value === 0) return !/^[^eE]*[1-9]/.test(number)
  return Number.isFinite(value) && plainNumber(number) === plainNumber(String(value))
}

const numberForm = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/

/** One spelling of a number: its digits without zeros at either end, and the power of ten. */
export function plainNumber(number: string): string {
  const [, sign, whole, fraction = '', exponent = '0'] = numberForm.exec(number)!
  const digits = whole + fraction
  let start = 0
  let end = digits.length
  while (digits[start] === '0') start++
  while (digits[end - 1] === '0') end--
  if (start >= end) return '0'
  const power = BigInt(exponent) + BigInt(digits.length - end - fraction.length)
  return `${sign}${digits.slice(start, end)}e${power}`
}

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
