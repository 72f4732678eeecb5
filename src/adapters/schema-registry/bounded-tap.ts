import type { Type, types } from 'avsc'

/** Avro's longs beyond this cannot be told apart as JavaScript numbers, and avsc refuses them. */
const largestLong = Number.MAX_SAFE_INTEGER - 1
/** A long takes at most this many bytes. */
const longBytes = 10

/**
 * What avsc's types read from, in the place of its own `Tap`, which reads past the end without a word: a few bad
 * bytes then make an array of a billion items that are not there. This one throws a RangeError as soon as bytes
 * are missing, a length is negative, or more is read than there are bytes (a skipped block can lead backwards).
 * Longs beyond 2^53 are read as the largest that is safe: only times can hold such, and no calendar holds those
 * either, so that the call can be told apart from bytes that make no sense. One tap is used for all records.
 */
export class BoundedTap {
  buf: Buffer = Buffer.alloc(0)
  pos = 0
  #end = 0
  #readsLeft = 0

  /** Starts over at a position of other bytes. */
  reset(bytes: Buffer, position: number): void {
    this.buf = bytes
    this.pos = position
    this.#end = bytes.length
    this.#readsLeft = bytes.length
  }

  /** Lets go of the bytes, which are part of a whole fetch. */
  release(): void {
    this.buf = empty
  }

  get isAtEnd(): boolean {
    return this.pos === this.#end
  }

  /** Advances by that number of bytes and returns the position before them. */
  #take(length: number): number {
    const start = this.pos
    const end = start + length
    // Written so that NaN fails too.
    if (!(length >= 0 && start >= 0 && end <= this.#end)) throw new RangeError('the bytes end too early')
    this.pos = end
    return start
  }

  readLong(): number {
    const { buf } = this
    const end = this.#end
    let at = this.pos
    if (--this.#readsLeft < 0 || at < 0) throw new RangeError('blocks overlap')
    // The first four bytes in whole-number arithmetic: nearly all lengths and counts end there.
    let bits = 0
    for (let shift = 0; shift < 28; shift += 7) {
      if (at >= end) throw new RangeError('the bytes end too early')
      const byte = buf[at++]!
      bits |= (byte & 0x7f) << shift
      if (byte < 0x80) {
        this.pos = at
        return (bits >> 1) ^ -(bits & 1)
      }
    }
    let zigzag = bits
    let factor = 2 ** 28
    const last = this.pos + longBytes
    for (;;) {
      if (at >= end) throw new RangeError('the bytes end too early')
      if (at === last) throw new RangeError('a long of more than ten bytes')
      const byte = buf[at++]!
      zigzag += (byte & 0x7f) * factor
      factor *= 128
      if (byte < 0x80) break
    }
    this.pos = at
    // Odd above 2^53 cannot be told from even, but the sign bit is the first byte's.
    if (bits & 1) return Math.max(-(zigzag + 1) / 2, -largestLong)
    return Math.min(zigzag / 2, largestLong)
  }

  readInt(): number {
    const value = this.readLong()
    if (value !== (value | 0)) throw new RangeError('a whole number of more than 32 bits')
    return value
  }

  skipLong(): void {
    this.readLong()
  }

  skipInt(): void {
    this.readLong()
  }

  readBoolean(): boolean {
    return this.buf[this.#take(1)] !== 0
  }

  skipBoolean(): void {
    this.#take(1)
  }

  readFloat(): number {
    return this.buf.readFloatLE(this.#take(4))
  }

  skipFloat(): void {
    this.#take(4)
  }

  readDouble(): number {
    return this.buf.readDoubleLE(this.#take(8))
  }

  skipDouble(): void {
    this.#take(8)
  }

  /** The record's own bytes, which are part of a whole fetch: callers that keep them for long copy them. */
  readFixed(length: number): Buffer {
    const start = this.#take(length)
    return this.buf.subarray(start, start + length)
  }

  skipFixed(length: number): void {
    this.#take(length)
  }

  readBytes(): Buffer {
    return this.readFixed(this.readLong())
  }

  skipBytes(): void {
    this.#take(this.readLong())
  }

  readString(): string {
    const length = this.readLong()
    const start = this.#take(length)
    return this.buf.toString('utf8', start, start + length)
  }

  skipString(): void {
    this.#take(this.readLong())
  }
}

const empty = Buffer.alloc(0)

/**
 * Whether some list in the schema holds items that take no bytes: a few bytes could then say that there are 2^53
 * of them, and reading would not end.
 */
export function hasEndlessItems(type: Type, seen = new Set<Type>()): boolean {
  if (seen.has(type)) return false
  seen.add(type)
  switch (type.typeName) {
    case 'array': {
      const { itemsType } = type as types.ArrayType
      return takesNoBytes(itemsType, new Set()) || hasEndlessItems(itemsType, seen)
    }
    case 'map':
      return hasEndlessItems((type as types.MapType).valuesType, seen)
    case 'record':
    case 'error':
      return (type as types.RecordType).fields.some((field) => hasEndlessItems(field.type, seen))
    case 'union:wrapped':
    case 'union:unwrapped':
      return (type as types.UnwrappedUnionType).types.some((branch) => hasEndlessItems(branch, seen))
    default:
      return false
  }
}

function takesNoBytes(type: Type, seen: Set<Type>): boolean {
  if (type.typeName === 'null') return true
  if (type.typeName === 'fixed') return (type as types.FixedType).size === 0
  if (type.typeName !== 'record' && type.typeName !== 'error') return false
  if (seen.has(type)) return true
  seen.add(type)
  return (type as types.RecordType).fields.every((field) => takesNoBytes(field.type, seen))
}
