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

/** For a text that is JSON. */
function hasEscapedKey(text: string): boolean {
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

function scalarOf(source: string, first: number, numberOf: NumberOf): unknown {
  if (first === quote) return stringOf(source)
  return source === 'true' ? true : source === 'false' ? false : source === 'null' ? null : numberOf(source)
}
