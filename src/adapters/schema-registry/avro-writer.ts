// Writers of Avro records, compiled from the schema once per process. The field accesses are generated as source text,
// as avsc does too (docs/performance.md). Nothing but field names of the files in `schemas/` gets into that text, and
// avsc has checked them to be identifiers: no data ever does.
//
// Half of a surrogate pair becomes U+FFFD in every text, as in Node. avsc does so only in texts of more than 64 bytes,
// and writes invalid UTF-8 in the others.
import type { Type, types } from 'avsc'
import { writeShortAscii } from '../short-text.ts'

/**
 * Writes a record at `at` and returns the position after it; -1 when the buffer may be too short, of which anything
 * after `at` may have been overwritten then. Throws a TypeError for a value that the schema cannot hold: that is a bug.
 */
export type WriteRecord<T> = (record: T, buffer: Buffer, at: number) => number

/** Writes one value, as WriteRecord does; may return a position after the buffer's end instead of -1. */
type WriteValue = WriteRecord<never>

/** Enough for any number, and for a length. */
const maxNumberBytes = 10

export function compileWriter<T>(type: Type): WriteRecord<T> {
  const write = writerOf(type, type.name ?? '') as WriteRecord<T>
  return (record, buffer, at) => {
    const end = write(record, buffer, at)
    return end > buffer.length ? -1 : end
  }
}

function writerOf(type: Type, path: string): WriteValue {
  switch (type.typeName) {
    case 'string':
      return writeText
    case 'long':
      return writeLong
    case 'int':
      return writeInt
    case 'double':
      return writeDouble
    case 'boolean':
      return writeBoolean
    case 'bytes':
      return writeBytes
    case 'enum':
      return symbolWriter((type as types.EnumType).symbols)
    case 'record':
      return recordWriter(type as types.RecordType, path)
    case 'array':
      return arrayWriter(type as types.ArrayType, path)
    default:
      throw new Error(`${path}: there is no writer for ${type.typeName}`)
  }
}

function recordWriter({ fields }: types.RecordType, path: string): WriteValue {
  const writers: WriteValue[] = []
  const statements = fields.map(({ name, type }) =>
    statementOf(type, `value.${name}`, `${path}.${name}`, writers),
  )
  return generate(statements.join('\n'), writers)
}

function arrayWriter({ itemsType }: types.ArrayType, path: string): WriteValue {
  const writers: WriteValue[] = [writeCount]
  const statement = statementOf(itemsType, 'value[index]', `${path}[]`, writers)
  return generate(
    `at = write0(value, buffer, at)
if (at < 0) return -1
for (let index = 0; index < value.length; index++) {
${statement}
}
buffer[at++] = 0`,
    writers,
  )
}

/** A function of its own for each type, so that each access in it is to one field of one kind of object. */
function generate(body: string, writers: readonly WriteValue[]): WriteValue {
  const names = writers.map((_, index) => `write${index}`)
  const source = `return (value, buffer, at) => {\n${body}\nreturn at\n}`
  return new Function(...names, source)(...writers) as WriteValue
}

/**
 * Source text that writes `value` and advances `at`. A byte that is set after the buffer's end is ignored by Node: what
 * follows, or the caller, sees that the position lies there.
 */
function statementOf(type: Type, value: string, path: string, writers: WriteValue[]): string {
  if (type.typeName !== 'union:unwrapped') {
    const index = writers.push(writerOf(type, path)) - 1
    return `at = write${index}(${value}, buffer, at)\nif (at < 0) return -1`
  }
  const [first, second, ...more] = (type as types.UnwrappedUnionType).types
  if (first?.typeName !== 'null' || second === undefined || more.length > 0)
    throw new Error(`${path}: the only unions with a writer are those of null and one more type`)
  return `if (${value} === null) buffer[at++] = 0
else {
buffer[at++] = 2
${statementOf(second, value, path, writers)}
}`
}

/** Starts an array: the count of the one block that holds all items, unless there are none. */
function writeCount(items: unknown, buffer: Buffer, at: number): number {
  if (!Array.isArray(items)) throw new TypeError(`${typeof items} instead of an array`)
  return items.length === 0 ? at : writeLong(items.length, buffer, at)
}

function writeText(text: string, buffer: Buffer, at: number): number {
  if (typeof text !== 'string') throw new TypeError(`${typeof text} instead of a string`)
  // A UTF-16 code unit takes at most three bytes.
  if (buffer.length - at < text.length * 3 + maxNumberBytes) return -1
  // The length of a short text takes one byte.
  const bytes = writeShortAscii(text, buffer, at + 1)
  if (bytes < 0) return writeLongText(text, buffer, at)
  buffer[at] = bytes << 1
  return at + 1 + bytes
}

/** The length in bytes stands before the text, and is known after it: in its place already if the text is ASCII. */
function writeLongText(text: string, buffer: Buffer, at: number): number {
  const start = at + sizeOfLength(text.length)
  const bytes = buffer.write(text, start)
  const textAt = at + sizeOfLength(bytes)
  if (textAt !== start) buffer.copyWithin(textAt, start, start + bytes)
  writeLong(bytes, buffer, at)
  return textAt + bytes
}

/** The bytes that `writeLong` takes for a length: seven bits each, one of them the sign's. */
const sizeOfLength = (length: number): number =>
  length < 1 << 6 ? 1 : length < 1 << 13 ? 2 : length < 1 << 20 ? 3 : 4

/** A whole number up to 2^53 either way: zigzag, then seven bits a byte, the lowest first. */
function writeLong(value: number, buffer: Buffer, at: number): number {
  if (!Number.isSafeInteger(value)) throw new TypeError(`${String(value)} instead of a whole number`)
  if (buffer.length - at < maxNumberBytes) return -1
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

function writeInt(value: number, buffer: Buffer, at: number): number {
  if (value !== (value | 0)) throw new TypeError(`${String(value)} instead of a whole number of 32 bits`)
  return writeLong(value, buffer, at)
}

function writeDouble(value: number, buffer: Buffer, at: number): number {
  if (typeof value !== 'number') throw new TypeError(`${typeof value} instead of a number`)
  return buffer.length - at < maxNumberBytes ? -1 : buffer.writeDoubleLE(value, at)
}

function writeBoolean(value: boolean, buffer: Buffer, at: number): number {
  if (typeof value !== 'boolean') throw new TypeError(`${typeof value} instead of a boolean`)
  buffer[at] = value ? 1 : 0
  return at + 1
}

function writeBytes(bytes: Uint8Array, buffer: Buffer, at: number): number {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${typeof bytes} instead of bytes`)
  if (buffer.length - at < bytes.length + maxNumberBytes) return -1
  at = writeLong(bytes.length, buffer, at)
  buffer.set(bytes, at)
  return at + bytes.length
}

/** An enum's symbol by its place. */
function symbolWriter(symbols: readonly string[]): WriteValue {
  if (symbols.length > 64) throw new Error('there is no writer for enums of more than 64 symbols')
  return (symbol: string, buffer: Buffer, at: number) => {
    const place = symbols.indexOf(symbol)
    if (place < 0) throw new TypeError(`${String(symbol)} is none of ${symbols.join(', ')}`)
    buffer[at] = place << 1
    return at + 1
  }
}
