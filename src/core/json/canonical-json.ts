import { resized } from '../resized.ts'
import { numberEnd, stringEnd } from './json-object.ts'
import { isExact, rawJSON, parseJson } from './parse-json.ts'

const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]
const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [minus, dot, zero, nine, letterU] = [0x2d, 0x2e, 0x30, 0x39, 0x75]

/** Each key is compared with all before it in its object; beyond this many, writing it again costs less. */
const maxKeys = 100
const maxRememberedLength = 16_384

/**
 * One JSON object as `JSON.stringify(JSON.parse(text))` writes it, so that a signature over the bytes and one over
 * the parsed body stringified again are equal; null for a text that is not exactly one JSON object (RFC 8259).
 * White space, escapes, keys that come twice (the last one counts), the order of keys that are whole numbers, and
 * spellings of numbers such as `3.50` or `-0` are made one. Two things stay as they are, because JSON.stringify
 * would lose them: a number that a double cannot hold (`12345678901234567890`, `1e400`), and a text that is nested
 * too deeply for JSON.stringify.
 *
 * A text that is canonical already, as most are, costs one scan and is given back as it is.
 */
export function canonicalObject(text: string): string | null {
  if (!isCanonicalObject(text)) return rewritten(text)
  remember(text)
  return text
}

/** Where the keys of the object begin, in their order; null for a text that `canonicalObject` would not give back as it is. */
export function canonicalKeys(text: string): readonly number[] | null {
  for (const { of, count, starts } of remembered) if (of === text) return listed(starts, count)
  return isCanonicalObject(text) ? listed(keyStarts, keyCount) : null
}

function listed(starts: Int32Array, count: number): number[] {
  const list: number[] = []
  for (let key = 0; key < count; key++) list.push(starts[key]!)
  return list
}

/** The keys of the texts that were seen last: what reads some of a call's maps does so right after they were checked. */
const remembered = Array.from({ length: 4 }, () => ({ of: '{}', count: 0, starts: new Int32Array(maxKeys) }))
let nextRemembered = 0

function remember(text: string): void {
  if (text.length > maxRememberedLength) return
  const place = remembered[nextRemembered]!
  nextRemembered = (nextRemembered + 1) % remembered.length
  place.of = text
  place.count = keyCount
  for (let key = 0; key < keyCount; key++) place.starts[key] = keyStarts[key]!
}

function rewritten(text: string): string | null {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return null
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null
  try {
    return JSON.stringify(parseJson(text, hasInexactNumber(text) ? keepInexact : undefined))
  } catch (error) {
    if (error instanceof RangeError) return text
    throw error
  }
}

const keepInexact = (source: string): unknown => (isExact(source) ? Number(source) : rawJSON(source))

function hasInexactNumber(json: string): boolean {
  for (let at = 0; at < json.length;) {
    const code = json.charCodeAt(at)
    if (code === quote) {
      at = stringEnd(json, at)
    } else if (code === minus || isDigit(code)) {
      const start = at
      at = numberEnd(json, at)
      if (!isCanonicalNumber(json, start, at) && !isExact(json.slice(start, at))) return true
    } else {
      at++
    }
  }
  return false
}

/** For each container that is open: the character that closes it, and how many keys were held before it. */
let closers = new Uint8Array(64)
let keyCounts = new Int32Array(64)
/** Of the keys of all objects that are open: where each begins, and what makes most of them differ. */
let keyStarts = new Int32Array(256)
let keyMarks = new Int32Array(256)
/** Of the object that was left last: its keys are the first that are held. */
let keyCount = 0

/**
 * Whether the text is a JSON object as JSON.stringify writes it. False also where that would take more than one scan
 * to say: an object with very many keys, or one with a key that begins with a digit, since whole numbers come first.
 */
function isCanonicalObject(text: string): boolean {
  keyCount = 0
  if (text === '{}') return true
  if (text.charCodeAt(0) !== openBrace || !text.isWellFormed()) return false
  let at = 0
  let depth = 0
  let keys = 0
  for (;;) {
    // A value begins at `at`.
    const first = text.charCodeAt(at)
    if (first === quote) {
      if ((at = canonicalStringEnd(text, at)) < 0) return false
    } else if (first === openBrace || first === openBracket) {
      const closer = first === openBrace ? closeBrace : closeBracket
      if (text.charCodeAt(at + 1) === closer) {
        at += 2
      } else {
        if (depth === closers.length) growDepth()
        closers[depth] = closer
        keyCounts[depth++] = keys
        at++
        if (closer === closeBrace) {
          if ((at = canonicalKeyEnd(text, at, keys, keys)) < 0) return false
          keys++
        }
        continue
      }
    } else if (first === minus || isDigit(first)) {
      const start = at
      at = numberEnd(text, at)
      if (at < 0 || !isCanonicalNumber(text, start, at)) return false
    } else if (text.startsWith('true', at) || text.startsWith('null', at)) {
      at += 4
    } else if (text.startsWith('false', at)) {
      at += 5
    } else {
      return false
    }
    // A value has ended before `at`; containers may end with it.
    for (;;) {
      if (depth === 0) return at === text.length
      const next = text.charCodeAt(at++)
      const closer = closers[depth - 1]
      if (next === closer) {
        keyCount = keys
        keys = keyCounts[--depth]!
        continue
      }
      if (next !== comma) return false
      if (closer === closeBrace) {
        if ((at = canonicalKeyEnd(text, at, keyCounts[depth - 1]!, keys)) < 0) return false
        keys++
      }
      break
    }
  }
}

/** Behind `"key":`; -1 where that is not canonical, or the key may not be the object's only one of its name. */
function canonicalKeyEnd(text: string, at: number, from: number, to: number): number {
  if (text.charCodeAt(at) !== quote || isDigit(text.charCodeAt(at + 1))) return -1
  const end = canonicalStringEnd(text, at)
  if (end < 0 || text.charCodeAt(end) !== colon || to - from === maxKeys) return -1
  if (to === keyStarts.length) growKeys()
  const mark =
    ((((end - at) << 8) ^ text.charCodeAt(end - 2)) << 8) ^
    // An empty key has nothing but its quotes.
    (text.charCodeAt(Math.max(at, end - 3)) << 4) ^
    text.charCodeAt(at + 1)
  for (let key = from; key < to; key++)
    if (keyMarks[key] === mark && text.startsWith(text.slice(at, end), keyStarts[key]!)) return -1
  keyStarts[to] = at
  keyMarks[to] = mark
  return end + 1
}

/** Behind the string, quotes included, of a text without lone surrogates. */
function canonicalStringEnd(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(++at)
    if (code === quote) return at + 1
    if (code === backslash) {
      const escaped = text.charCodeAt(++at)
      if (escaped === letterU) {
        if (!isControlEscape(text.slice(at + 1, at + 5))) return -1
        at += 4
      } else if (!'"\\bfnrt'.includes(text[at] ?? '/')) {
        return -1
      }
    } else if (!(code >= 0x20)) {
      return -1
    }
  }
}

/** JSON.stringify writes so only control characters that have no short escape, and lone surrogates: these are rare. */
const isControlEscape = (hex: string): boolean => /^00(?:0[0-7bef]|1[0-9a-f])$/.test(hex)

/** Of a well-formed number. Up to 15 digits a double keeps, and String writes them in this form. */
function isCanonicalNumber(text: string, start: number, end: number): boolean {
  let digits = 0
  let dotAt = -1
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at)
    if (isDigit(code)) digits++
    else if (code === dot) dotAt = at
    else if (code !== minus) return isWrittenSo(text, start, end)
  }
  const firstDigit = text.charCodeAt(text.charCodeAt(start) === minus ? start + 1 : start)
  const isShort = digits <= 15
  if (dotAt < 0) return isShort && firstDigit !== zero ? true : isWrittenSo(text, start, end)
  // 0.000001 is the least that is written without an exponent.
  if (isShort && text.charCodeAt(end - 1) !== zero && (firstDigit !== zero || end - dotAt <= 7)) return true
  return isWrittenSo(text, start, end)
}

function isWrittenSo(text: string, start: number, end: number): boolean {
  const number = text.slice(start, end)
  return String(Number(number)) === number
}

const isDigit = (code: number): boolean => code >= zero && code <= nine

function growDepth(): void {
  closers = resized(closers, closers.length * 4)
  keyCounts = resized(keyCounts, keyCounts.length * 4)
}

function growKeys(): void {
  keyStarts = resized(keyStarts, keyStarts.length * 2)
  keyMarks = resized(keyMarks, keyMarks.length * 2)
}
