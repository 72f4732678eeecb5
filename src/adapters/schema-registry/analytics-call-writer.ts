// avsc goes by a schema that it knows only when it runs: some 1 µs a call. What follows writes the same bytes of the
// one record that the collector writes, in half of that. A test holds the two against each other, and so against
// schemas/analytics-call.avsc.
import { callTypes } from '../../core/analytics-call.ts'
import type { AnalyticsCall } from '../../core/analytics-call.ts'
import { writeShortAscii } from '../short-text.ts'

/** The places of the enum's symbols. */
const symbols: readonly AnalyticsCall['type'][] = ['unknown', ...callTypes]

/** Of what is no text: the type and three times, with their branches. */
const mostOtherBytes = 1 + 3 * 11
/** A length takes at most so many bytes, with its branch. */
const mostLengthBytes = 6

/**
 * Writes the call's Avro record at `at` and gives the position behind it; -1 when the buffer may be too short. Throws
 * for what the schema cannot hold: that is a bug.
 */
export function writeAnalyticsCall(call: AnalyticsCall, buffer: Buffer, at: number): number {
  if (!fits(call, buffer.length - at)) return -1
  at = writeText(buffer, at, call.messageId)
  at = writeText(buffer, at, call.sourceId)
  buffer[at++] = placeOf(call.type) << 1
  at = writeNullableText(buffer, at, call.userId)
  at = writeNullableText(buffer, at, call.anonymousId)
  at = writeNullableText(buffer, at, call.previousId)
  at = writeNullableText(buffer, at, call.groupId)
  at = writeNullableText(buffer, at, call.event)
  at = writeNullableText(buffer, at, call.name)
  at = writeNullableText(buffer, at, call.category)
  at = writeLong(buffer, at, call.timestamp)
  at = writeLong(buffer, at, call.receivedAt)
  if (call.sentAt === null) {
    buffer[at++] = 0
  } else {
    buffer[at++] = 2
    at = writeLong(buffer, at, call.sentAt)
  }
  at = writeNullableText(buffer, at, call.properties)
  at = writeNullableText(buffer, at, call.traits)
  at = writeNullableText(buffer, at, call.context)
  return writeNullableText(buffer, at, call.integrations)
}

function placeOf(type: AnalyticsCall['type']): number {
  const place = symbols.indexOf(type)
  if (place < 0) throw new TypeError(`${type} is no type of a call`)
  return place
}

function fits(call: AnalyticsCall, room: number): boolean {
  const units =
    call.messageId.length +
    call.sourceId.length +
    unitsOf(call.userId) +
    unitsOf(call.anonymousId) +
    unitsOf(call.previousId) +
    unitsOf(call.groupId) +
    unitsOf(call.event) +
    unitsOf(call.name) +
    unitsOf(call.category) +
    unitsOf(call.properties) +
    unitsOf(call.traits) +
    unitsOf(call.context) +
    unitsOf(call.integrations)
  // A UTF-16 code unit takes at most three bytes.
  return units * 3 + 13 * mostLengthBytes + mostOtherBytes <= room
}

const unitsOf = (text: string | null): number => (text === null ? 0 : text.length)

/** A union of null and a string: its branch, then the string. */
function writeNullableText(buffer: Buffer, at: number, text: string | null): number {
  if (text === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at] = 2
  return writeText(buffer, at + 1, text)
}

function writeText(buffer: Buffer, at: number, text: string): number {
  // Of a short text the length takes one byte.
  const bytes = writeShortAscii(text, buffer, at + 1)
  if (bytes < 0) return writeLongText(buffer, at, text)
  buffer[at] = bytes << 1
  return at + 1 + bytes
}

/** The length in bytes stands before the text, and is known after it: where it belongs if the text is ASCII. */
function writeLongText(buffer: Buffer, at: number, text: string): number {
  const start = at + sizeOfLength(text.length)
  const bytes = buffer.write(text, start)
  const belongs = at + sizeOfLength(bytes)
  if (belongs !== start) buffer.copyWithin(belongs, start, start + bytes)
  writeLong(buffer, at, bytes)
  return belongs + bytes
}

/** Of a length as `writeLong` has it: seven bits a byte, one of them the sign's. */
const sizeOfLength = (length: number): number =>
  length < 1 << 6 ? 1 : length < 1 << 13 ? 2 : length < 1 << 20 ? 3 : 4

/** A whole number up to 2^53 either way: zigzag, then seven bits a byte, the lowest first. */
function writeLong(buffer: Buffer, at: number, value: number): number {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is no whole number`)
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  // Beyond 32 bits there are no shifts.
  for (; rest >= 0x8000_0000; rest = Math.floor(rest / 0x80)) buffer[at++] = (rest % 0x80) | 0x80
  for (; rest > 0x7f; rest >>>= 7) buffer[at++] = (rest & 0x7f) | 0x80
  buffer[at++] = rest
  return at
}
