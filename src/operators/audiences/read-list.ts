import { eachMember, keyOf, stringOf } from '../../core/json/json-members.ts'
import { spaceEnd } from '../../core/json/json-object.ts'
import { PostriderError } from '../../errors.ts'
import { maxIdBytes, userIdFault } from '../deletions/user-ids.ts'
import type { MemberBatch } from './sync.ts'

/** JSON text in UTF-8: the call that it goes into stays within 32 KB. */
export const maxValueBytes = 16 * 1_024
const maxLineBytes = 64 * 1_024

const lineFeed = 10
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** `id`: an id. `member`: `{"userId"}`, with `"member": false` for a user that leaves. `value`: `{"userId", "value"}`. */
export type LineForm = 'id' | 'member' | 'value'

/**
 * The users of a list, one a line; `member` says whether plain ids are in or out. Reads as it goes, in batches of as
 * many lines as came together. Throws `usage` with the line's number for the first one that is empty, too long, or
 * not text. `list` is what errors call it.
 */
export async function* readList(
  input: AsyncIterable<Uint8Array>,
  form: LineForm,
  member = true,
  list: string | null = null,
): AsyncGenerator<MemberBatch, void, undefined> {
  let line = 1
  for await (const lines of linesOf(input, list)) {
    const first = line
    line += lines.length
    if (form === 'id') {
      for (let at = 0; at < lines.length; at++)
        if (!isPlainId(lines[at]!)) checkedId(lines[at]!, place(list, first + at))
      yield { users: lines, values: null, member, list, line: first }
    } else if (form === 'member') {
      yield* memberBatches(lines, list, first)
    } else {
      const users: string[] = []
      const values: (string | null)[] = []
      for (const [at, text] of lines.entries()) {
        const read = readValue(text, place(list, first + at))
        users.push(read.userId)
        values.push(read.value)
      }
      yield { users, values, member, list, line: first }
    }
  }
}

/** What errors call a line of a list. */
export function place(list: string | null, line: number): string {
  if (line === 0) return list ?? 'an id'
  return list === null ? `line ${line}` : `line ${line} of ${list}`
}

/** Throws `usage`; `at` is as `place` gives it. */
export function checkedId(id: string, at: string): string {
  const fault = userIdFault(id)
  if (fault !== null) throw wrong(at, fault)
  return id
}

/** What most ids are: nothing of `checkedId` can be wrong with them. */
function isPlainId(id: string): boolean {
  if (id.length === 0 || id.length > maxIdBytes) return false
  for (let at = 0; at < id.length; at++) {
    const code = id.charCodeAt(at)
    if (code <= 0x20 || code >= 0x7f) return false
  }
  return true
}

const wrong = (at: string, what: string): PostriderError =>
  new PostriderError('usage', `${at} ${what}; nothing was changed`)

/** Consecutive users that all join, or all leave, make a batch. */
function* memberBatches(
  lines: readonly string[],
  list: string | null,
  first: number,
): Generator<MemberBatch> {
  let users: string[] = []
  let isIn = true
  for (const [at, text] of lines.entries()) {
    const read = readMember(text, place(list, first + at))
    if (read.isIn !== isIn && users.length > 0) {
      yield { users, values: null, member: isIn, list, line: first + at - users.length }
      users = []
    }
    isIn = read.isIn
    users.push(read.userId)
  }
  if (users.length > 0)
    yield { users, values: null, member: isIn, list, line: first + lines.length - users.length }
}

function readMember(text: string, at: string): { userId: string; isIn: boolean } {
  const { userId, member = 'true' } = readObject(text, at)
  if (member !== 'true' && member !== 'false') throw wrong(at, 'has a member that is neither true nor false')
  return { userId: idOf(userId, at), isIn: member === 'true' }
}

function readValue(text: string, at: string): { userId: string; value: string | null } {
  const { userId, value } = readObject(text, at)
  const id = idOf(userId, at)
  if (value === undefined) throw wrong(at, 'has no value')
  const compact = withoutSpace(value)
  if (Buffer.byteLength(compact) > maxValueBytes)
    throw wrong(at, `has a value of more than ${maxValueBytes} bytes`)
  return { userId: id, value: compact === 'null' ? null : compact }
}

function idOf(json: string | undefined, at: string): string {
  if (!json?.startsWith('"')) throw wrong(at, 'has no userId that is a string')
  return checkedId(stringOf(json), at)
}

/** The members of a line's object, as JSON text; of one that is there twice the last. */
function readObject(text: string, at: string): Partial<Record<'userId' | 'value' | 'member', string>> {
  const found: Record<string, string> = {}
  const end = eachMember(text, spaceEnd(text, 0), (keyStart, keyEnd, from, to) => {
    const key = keyOf(text, keyStart, keyEnd)
    if (key === 'userId' || key === 'value' || key === 'member') found[key] = text.slice(from, to)
  })
  if (end < 0 || spaceEnd(text, end) !== text.length)
    throw wrong(at, text === '' ? 'is empty' : 'is not a JSON object')
  return found
}

/** JSON text without the space between its parts: that alone is no change. Numbers keep their spelling. */
const withoutSpace = (json: string): string =>
  json.replace(/("(?:[^"\\]|\\.)*")|[ \t\r\n]+/g, (_, text?: string) => text ?? '')

/** All lines that end within a chunk, without their LF or CRLF; the file's last one needs none. */
async function* linesOf(
  input: AsyncIterable<Uint8Array>,
  list: string | null,
): AsyncGenerator<string[], void, undefined> {
  let rest = Buffer.alloc(0)
  let line = 0
  for await (const chunk of input) {
    const data = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
    const end = data.lastIndexOf(lineFeed) + 1
    rest = data.subarray(end)
    if (end > 0) {
      const lines = split(data.subarray(0, end - 1), line, list)
      line += lines.length
      yield lines
    }
    if (rest.length > maxLineBytes) throw tooLong(list, line + 1)
  }
  if (rest.length > 0) yield split(rest, line, list)
}

/** The lines of bytes that hold whole ones; `before` of them came earlier. */
function split(bytes: Buffer, before: number, list: string | null): string[] {
  const lines = decoded(bytes, before, list).split('\n')
  for (let at = 0; at < lines.length; at++) {
    const text = lines[at]!
    if (text.endsWith('\r')) lines[at] = text.slice(0, -1)
    if (text.length > maxLineBytes / 3 && Buffer.byteLength(text) > maxLineBytes)
      throw tooLong(list, before + at + 1)
  }
  if (before === 0 && lines[0]!.startsWith('\ufeff')) lines[0] = lines[0]!.slice(1)
  return lines
}

function decoded(bytes: Buffer, before: number, list: string | null): string {
  try {
    return utf8.decode(bytes)
  } catch {
    // Which of the lines it is.
    let line = before
    for (let from = 0; from <= bytes.length; line++) {
      const end = bytes.indexOf(lineFeed, from)
      const to = end < 0 ? bytes.length : end
      try {
        utf8.decode(bytes.subarray(from, to))
      } catch {
        throw wrong(place(list, line + 1), 'is not text in UTF-8')
      }
      from = to + 1
    }
    throw wrong(place(list, before + 1), 'is not text in UTF-8')
  }
}

const tooLong = (list: string | null, line: number): PostriderError =>
  wrong(place(list, line), `is longer than ${maxLineBytes} bytes`)
