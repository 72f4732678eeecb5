import { resized } from '../resized.ts'

const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [minus, plus, dot, zero, nine] = [0x2d, 0x2b, 0x2e, 0x30, 0x39]

/** For each container that is open: the character that closes it. Kept between calls, so that none makes garbage. */
let closers = new Uint8Array(64)

/**
 * Whether the text is exactly one JSON object (RFC 8259) with nothing but white space around it, so that it can
 * be put into a larger JSON text as it is: `{},"userId":"x"` cannot add a key there. Says what `JSON.parse` would,
 * in half its time and without building the object.
 */
export function isJsonObject(text: string): boolean {
  if (text === '{}') return true
  const at = spaceEnd(text, 0)
  if (text.charCodeAt(at) !== openBrace) return false
  const end = valueEnd(text, at)
  return end >= 0 && spaceEnd(text, end) === text.length
}

// Each of these gives the position behind what begins at `at`, or -1 when it is not well-formed. Beyond the
// text's end charCodeAt is NaN, which equals nothing and compares as false.

/** Behind the JSON value of any kind that begins at `at`. However deep it is nested, the stack does not grow. */
export function valueEnd(text: string, at: number): number {
  let depth = 0
  for (;;) {
    // A value begins at `at`.
    const first = text.charCodeAt(at)
    if (first === openBrace || first === openBracket) {
      const closer = first === openBrace ? closeBrace : closeBracket
      at = spaceEnd(text, at + 1)
      if (text.charCodeAt(at) === closer) {
        at++
      } else {
        if (depth === closers.length) closers = resized(closers, depth * 4)
        closers[depth++] = closer
        if (closer === closeBrace && (at = keyEnd(text, at)) < 0) return -1
        continue
      }
    } else if ((at = scalarEnd(text, at, first)) < 0) {
      return -1
    }
    // A value has ended before `at`; containers may end with it.
    for (;;) {
      if (depth === 0) return at
      at = spaceEnd(text, at)
      const next = text.charCodeAt(at++)
      const closer = closers[depth - 1]
      if (next === closer) {
        depth--
        continue
      }
      if (next !== comma) return -1
      at = spaceEnd(text, at)
      if (closer === closeBrace && (at = keyEnd(text, at)) < 0) return -1
      break
    }
  }
}

export function spaceEnd(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
    at++
  }
}

/** Behind `"key" :` and the space after it. */
function keyEnd(text: string, at: number): number {
  if (text.charCodeAt(at) !== quote) return -1
  at = stringEnd(text, at)
  if (at < 0) return -1
  at = spaceEnd(text, at)
  return text.charCodeAt(at) === colon ? spaceEnd(text, at + 1) : -1
}

function scalarEnd(text: string, at: number, first: number): number {
  if (first === quote) return stringEnd(text, at)
  if (first === minus || isDigit(first)) return numberEnd(text, at)
  if (text.startsWith('true', at) || text.startsWith('null', at)) return at + 4
  return text.startsWith('false', at) ? at + 5 : -1
}

/** Behind the string, quotes included. */
export function stringEnd(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(++at)
    if (code === quote) return at + 1
    if (code === backslash) {
      const escaped = text.charCodeAt(++at)
      if (escaped === 0x75) {
        for (let digit = 0; digit < 4; digit++) if (!isHexDigit(text.charCodeAt(++at))) return -1
      } else if (!isShortEscape(escaped)) {
        return -1
      }
    } else if (!(code >= 0x20)) {
      return -1
    }
  }
}

/** One of `" \ / b f n r t`. */
function isShortEscape(code: number): boolean {
  switch (code) {
    case quote:
    case backslash:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return true
    default:
      return false
  }
}

/** Behind the number; -1 when it is not well-formed. */
export function numberEnd(text: string, at: number): number {
  if (text.charCodeAt(at) === minus) at++
  if (text.charCodeAt(at) === zero) at++
  else if ((at = digitsEnd(text, at)) < 0) return -1
  if (text.charCodeAt(at) === dot && (at = digitsEnd(text, at + 1)) < 0) return -1
  // e or E
  if ((text.charCodeAt(at) | 0x20) !== 0x65) return at
  const sign = text.charCodeAt(++at)
  return digitsEnd(text, sign === plus || sign === minus ? at + 1 : at)
}

/** At least one digit. */
function digitsEnd(text: string, at: number): number {
  if (!isDigit(text.charCodeAt(at))) return -1
  while (isDigit(text.charCodeAt(++at)));
  return at
}

const isDigit = (code: number): boolean => code >= zero && code <= nine
const isHexDigit = (code: number): boolean =>
  isDigit(code) || ((code | 0x20) >= 0x61 && (code | 0x20) <= 0x66)
