import { eachMember, stringOf } from '../../core/json-members.ts'
import { spaceEnd } from '../../core/json-object.ts'
import { PostriderError } from '../../errors.ts'
import type { Given } from './ports.ts'

/** An id in UTF-8. */
export const mostIdBytes = 1_024
/** JSON text in UTF-8: the call that it goes into stays within 32 KB. */
export const mostValueBytes = 16 * 1_024
const mostLineBytes = 64 * 1_024

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** `id`: an id. `member`: `{"userId"}`, with `"member": false` for who is out. `value`: `{"userId", "value"}`. */
export type LineForm = 'id' | 'member' | 'value'

/**
 * The users of a list, one a line; `member` says whether plain ids are in or out. Reads as it goes. Throws `usage`
 * with the line's number for the first one that is empty, too long, or not text.
 */
export async function* readList(
  input: AsyncIterable<Uint8Array>,
  form: LineForm,
  member = true,
): AsyncGenerator<Given, void, undefined> {
  for await (const { bytes, line } of byLine(input)) {
    const text = textOf(bytes, line)
    if (form === 'id') {
      yield { userId: checkedId(text, line), value: null, member, line }
    } else if (form === 'member') {
      const { userId, isIn } = readMember(text, line)
      yield { userId: checkedId(userId, line), value: null, member: isIn, line }
    } else {
      const { userId, value } = readValue(text, line)
      yield { userId: checkedId(userId, line), value, member: value !== null, line }
    }
  }
}

/** Throws `usage`; `line` 0 is an id that was given by itself. */
export function checkedId(id: string, line: number): string {
  if (id === '') throw wrong(line, 'is empty')
  if (Buffer.byteLength(id) > mostIdBytes) throw wrong(line, `holds an id of more than ${mostIdBytes} bytes`)
  if (/\p{Cc}/u.test(id) || !id.isWellFormed()) throw wrong(line, 'is not text: it holds control characters')
  if (id.trim() !== id) throw wrong(line, 'begins or ends with white space')
  return id
}

const wrong = (line: number, what: string): PostriderError =>
  new PostriderError('usage', `${line === 0 ? 'an id' : `line ${line}`} ${what}; nothing was changed`)

function textOf(bytes: Uint8Array, line: number): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw wrong(line, 'is not text in UTF-8')
  }
}

function readMember(text: string, line: number): { userId: string; isIn: boolean } {
  const { userId, member = 'true' } = readObject(text, line)
  if (member !== 'true' && member !== 'false')
    throw wrong(line, 'has a member that is neither true nor false')
  return { userId: idOf(userId, line), isIn: member === 'true' }
}

function readValue(text: string, line: number): { userId: string; value: string | null } {
  const { userId, value } = readObject(text, line)
  const id = idOf(userId, line)
  if (value === undefined) throw wrong(line, 'has no value')
  const compact = withoutSpace(value)
  if (Buffer.byteLength(compact) > mostValueBytes)
    throw wrong(line, `has a value of more than ${mostValueBytes} bytes`)
  return { userId: id, value: compact === 'null' ? null : compact }
}

function idOf(json: string | undefined, line: number): string {
  if (!json?.startsWith('"')) throw wrong(line, 'has no userId that is a string')
  return stringOf(json)
}

/** The members of a line's object, as JSON text; of one that is there twice the last. */
function readObject(text: string, line: number): Partial<Record<'userId' | 'value' | 'member', string>> {
  const found: Record<string, string> = {}
  const end = eachMember(text, spaceEnd(text, 0), (key, from, to) => {
    if (key === 'userId' || key === 'value' || key === 'member') found[key] = text.slice(from, to)
  })
  if (end < 0 || spaceEnd(text, end) !== text.length) throw wrong(line, 'is not a JSON object')
  return found
}

/** JSON text without the space between its parts: that alone is no change. Numbers keep their spelling. */
const withoutSpace = (json: string): string =>
  json.replace(/("(?:[^"\\]|\\.)*")|[ \t\r\n]+/g, (_, text?: string) => text ?? '')

async function* byLine(
  input: AsyncIterable<Uint8Array>,
): AsyncGenerator<{ bytes: Uint8Array; line: number }, void, undefined> {
  let rest = Buffer.alloc(0)
  let line = 0
  for await (const chunk of input) {
    const data = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
    let from = 0
    for (let end = data.indexOf(10); end >= 0; end = data.indexOf(10, from)) {
      yield { bytes: trimmed(data.subarray(from, end), ++line), line }
      from = end + 1
    }
    rest = data.subarray(from)
    if (rest.length > mostLineBytes) throw wrong(line + 1, `is longer than ${mostLineBytes} bytes`)
  }
  if (rest.length > 0) yield { bytes: trimmed(rest, ++line), line }
}

/** Without the CR of CRLF; TextDecoder takes a byte order mark away. */
function trimmed(bytes: Buffer, line: number): Buffer {
  if (bytes.length > mostLineBytes) throw wrong(line, `is longer than ${mostLineBytes} bytes`)
  return bytes.at(-1) === 13 ? bytes.subarray(0, -1) : bytes
}
