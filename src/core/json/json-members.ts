import { spaceEnd, stringEnd, valueEnd } from './json-object.ts'

const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]
const [quote, comma, colon] = [0x22, 0x2c, 0x3a]

/**
 * Walks the object that begins at `at` and reports for each member where its key, quotes included, and its value begin
 * and end in the text. Values are checked and not built, so that numbers keep their spelling and nothing is made of
 * what is not asked for. Gives the position behind the object; -1 when there is no well-formed object (members before
 * the fault have been reported then). A key may come twice: the last one counts.
 *
 * `look` finds the end of a value; with one of one's own a value can be read while it is checked.
 */
export function eachMember(
  text: string,
  at: number,
  report: (keyStart: number, keyEnd: number, start: number, end: number) => void,
  look: (text: string, start: number, keyStart: number, keyEnd: number) => number = valueEnd,
): number {
  if (text.charCodeAt(at) !== openBrace) return -1
  at = spaceEnd(text, at + 1)
  if (text.charCodeAt(at) === closeBrace) return at + 1
  for (;;) {
    const keyStart = at
    if (text.charCodeAt(at) !== quote || (at = stringEnd(text, at)) < 0) return -1
    const keyEnd = at
    at = spaceEnd(text, at)
    if (text.charCodeAt(at) !== colon) return -1
    const start = spaceEnd(text, at + 1)
    at = look(text, start, keyStart, keyEnd)
    if (at < 0) return -1
    report(keyStart, keyEnd, start, at)
    at = spaceEnd(text, at)
    const next = text.charCodeAt(at++)
    if (next === closeBrace) return at
    if (next !== comma) return -1
    at = spaceEnd(text, at)
  }
}

/** The text of a key that `eachMember` reports. */
export const keyOf = (text: string, keyStart: number, keyEnd: number): string =>
  stringOf(text.slice(keyStart, keyEnd))

/** As `eachMember`, for the elements of the array that begins at `at`. */
export function eachElement(
  text: string,
  at: number,
  report: (start: number, end: number) => void,
  look: (text: string, start: number) => number = valueEnd,
): number {
  if (text.charCodeAt(at) !== openBracket) return -1
  at = spaceEnd(text, at + 1)
  if (text.charCodeAt(at) === closeBracket) return at + 1
  for (;;) {
    const end = look(text, at)
    if (end < 0) return -1
    report(at, end)
    at = spaceEnd(text, end)
    const next = text.charCodeAt(at++)
    if (next === closeBracket) return at
    if (next !== comma) return -1
    at = spaceEnd(text, at)
  }
}

/** What a well-formed JSON string, quotes included, says. Most have no escapes. */
export function stringOf(quoted: string): string {
  return quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1)
}
