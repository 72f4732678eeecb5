import { eachMember, keyOf } from '../json/json-members.ts'

/** The fields of a call, each with its place. Others are not looked at. */
export const field = {
  type: 0,
  userId: 1,
  anonymousId: 2,
  previousId: 3,
  groupId: 4,
  messageId: 5,
  sourceId: 6,
  event: 7,
  name: 8,
  category: 9,
  timestamp: 10,
  originalTimestamp: 11,
  sentAt: 12,
  properties: 13,
  traits: 14,
  context: 15,
  integrations: 16,
} as const

/** By their place. */
export const fieldNames = Object.keys(field)

/**
 * Where the values of calls lie in a text: for each call its fields in the order of their places, each with the
 * position of its beginning and the one behind it; 0 and 0 for a field that the call does not have. Numbers in one
 * array, for a text of its own for each value would be most of the work.
 */
export type CallSpans = Int32Array

/** How many numbers of the spans are one call's. */
export const spansPerCall = 2 * fieldNames.length

const places = new Map(Object.entries(field))
const longest = Math.max(...fieldNames.map((name) => name.length))
/** By the length of their names. */
const candidates = Array.from({ length: longest + 1 }, (_, length) =>
  [...places].filter(([name]) => name.length === length).map(([name, place]) => ({ name, place })),
)

/**
 * Fills the spans from `base` on with those of the object that begins at `at`, and reports to `others` every member
 * that is no field. Gives the position behind the object; -1 when there is no well-formed one.
 */
export function scanCall(
  text: string,
  at: number,
  spans: CallSpans,
  base: number,
  others?: (key: string, start: number, end: number) => void,
): number {
  spans.fill(0, base, base + spansPerCall)
  return eachMember(text, at, (keyStart, keyEnd, start, end) => {
    const place = placeOf(text, keyStart, keyEnd)
    if (place >= 0) {
      spans[base + 2 * place] = start
      spans[base + 2 * place + 1] = end
    } else if (others) {
      others(keyOf(text, keyStart, keyEnd), start, end)
    }
  })
}

/** Of the field that the key, quotes included, names; -1 for any other. */
function placeOf(text: string, start: number, end: number): number {
  const length = end - start - 2
  if (length <= longest) {
    for (const { name, place } of candidates[length]!) if (isAt(text, start + 1, name)) return place
  }
  // It may be written with escapes.
  return places.get(keyOf(text, start, end)) ?? -1
}

function isAt(text: string, at: number, word: string): boolean {
  for (let index = 0; index < word.length; index++)
    if (text.charCodeAt(at + index) !== word.charCodeAt(index)) return false
  return true
}
