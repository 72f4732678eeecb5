// Avro's binary encoding, type by type, for writers that know their record beforehand: avsc goes by a schema that it
// knows only when it runs, and takes at least twice as long. A `write` function writes at `at`, where there must be
// room, and gives the position behind; the `roomFor` functions say how much room is always enough. A test of each
// writer holds its bytes against those of avsc by the record's schema.
//
// Half of a surrogate pair becomes U+FFFD in every text, as Node has it. avsc does so in texts of more than 64 bytes
// only, and makes bytes of it in the others that are no UTF-8.
import { writeShortAscii } from '../short-text.ts'

/** For a whole number or a double, also in a union with null. */
export const roomForNumber = 11
/** For an enum's symbol, or for null. */
export const roomForSymbol = 1
/** For a length with a union's branch before it, or for the count of a list and its end. */
export const roomForLength = 6

// A UTF-16 code unit takes at most three bytes.
export const roomForText = (text: string | null): number =>
  text === null ? 1 : text.length * 3 + roomForLength

export const roomForBytes = (bytes: Uint8Array | null): number =>
  bytes === null ? 1 : bytes.length + roomForLength

export function roomForTexts(texts: readonly string[]): number {
  let room = roomForLength
  for (let index = 0; index < texts.length; index++) room += roomForText(texts[index]!)
  return room
}

/**
 * Whether that many bytes are left after `at`. Throws when `room` is no number, as it is when what was measured has no
 * length: no buffer would be long enough for that.
 */
export function hasRoom(buffer: Buffer, at: number, room: number): boolean {
  if (room <= buffer.length - at) return true
  if (Number.isNaN(room)) throw new TypeError('a field of the record is of another type than in its schema')
  return false
}

/** A union of null and a string: its branch, then the string. */
export function writeNullableText(buffer: Buffer, at: number, text: string | null): number {
  if (text === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at] = 2
  return writeText(buffer, at + 1, text)
}

export function writeText(buffer: Buffer, at: number, text: string): number {
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

/**
 * Begins an array: the count of the one block that holds all items, unless there are none. The items follow, and the
 * empty block that ends it: a zero.
 */
export function writeCount(buffer: Buffer, at: number, items: readonly unknown[]): number {
  if (!Array.isArray(items)) throw new TypeError(`${typeof items} is no array`)
  return items.length === 0 ? at : writeLong(buffer, at, items.length)
}

export function writeTexts(buffer: Buffer, at: number, texts: readonly string[]): number {
  at = writeCount(buffer, at, texts)
  for (let index = 0; index < texts.length; index++) at = writeText(buffer, at, texts[index]!)
  buffer[at] = 0
  return at + 1
}

export function writeBytes(buffer: Buffer, at: number, bytes: Uint8Array): number {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${typeof bytes} is no bytes`)
  at = writeLong(buffer, at, bytes.length)
  buffer.set(bytes, at)
  return at + bytes.length
}

export function writeNullableBytes(buffer: Buffer, at: number, bytes: Uint8Array | null): number {
  if (bytes === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at] = 2
  return writeBytes(buffer, at + 1, bytes)
}

/** A whole number up to 2^53 either way: zigzag, then seven bits a byte, the lowest first. */
export function writeLong(buffer: Buffer, at: number, value: number): number {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${value} is no whole number`)
  let rest = value < 0 ? -2 * value - 1 : 2 * value
  if (rest > 0x7fff_ffff) {
    // Beyond 32 bits there are no shifts: the four lowest bytes by themselves.
    const high = Math.floor(rest / 0x1000_0000)
    const low = rest - high * 0x1000_0000
    buffer[at] = (low & 0x7f) | 0x80
    buffer[at + 1] = ((low >>> 7) & 0x7f) | 0x80
    buffer[at + 2] = ((low >>> 14) & 0x7f) | 0x80
    buffer[at + 3] = (low >>> 21) | 0x80
    at += 4
    rest = high
  }
  for (; rest > 0x7f; rest >>>= 7) buffer[at++] = (rest & 0x7f) | 0x80
  buffer[at++] = rest
  return at
}

export function writeNullableLong(buffer: Buffer, at: number, value: number | null): number {
  if (value === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at] = 2
  return writeLong(buffer, at + 1, value)
}

/** As a long, of 32 bits. */
export function writeInt(buffer: Buffer, at: number, value: number): number {
  if (value !== (value | 0)) throw new TypeError(`${value} is no whole number of 32 bits`)
  return writeLong(buffer, at, value)
}

export function writeNullableInt(buffer: Buffer, at: number, value: number | null): number {
  if (value === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at] = 2
  return writeInt(buffer, at + 1, value)
}

export function writeDouble(buffer: Buffer, at: number, value: number): number {
  if (typeof value !== 'number') throw new TypeError(`${typeof value} is no number`)
  return buffer.writeDoubleLE(value, at)
}

export function writeNullableDouble(buffer: Buffer, at: number, value: number | null): number {
  if (value === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at] = 2
  return writeDouble(buffer, at + 1, value)
}

/** An enum's symbol by its place; there are fewer than 64. */
export function writeSymbol(buffer: Buffer, at: number, symbol: string, symbols: readonly string[]): number {
  const place = symbols.indexOf(symbol)
  if (place < 0) throw new TypeError(`${symbol} is none of ${symbols.join(', ')}`)
  buffer[at] = place << 1
  return at + 1
}
