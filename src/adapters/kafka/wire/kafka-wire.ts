// Kafka's encoding of requests and answers, in the versions before its flexible one.

export const int16 = (value: number): Buffer => {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}

export const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

export const text = (value: string): Buffer => {
  const bytes = Buffer.from(value)
  return Buffer.concat([int16(bytes.length), bytes])
}

export const flags = (...values: boolean[]): Buffer => Buffer.from(values.map(Number))

/** Reads an answer from its beginning on. Throws a RangeError where it ends too early. */
export class WireReader {
  readonly payload: Buffer
  /** Where the next field begins. */
  at = 0

  constructor(payload: Buffer) {
    this.payload = payload
  }

  pass(bytes: number): void {
    this.at += bytes
  }

  int16(): number {
    this.at += 2
    return this.payload.readInt16BE(this.at - 2)
  }

  int32(): number {
    this.at += 4
    return this.payload.readInt32BE(this.at - 4)
  }

  text(): string | null {
    const length = this.int16()
    if (length < 0) return null
    this.at += length
    return this.payload.toString('utf8', this.at - length, this.at)
  }

  passBytes(): void {
    this.at += Math.max(0, this.int32())
  }

  /** None where there is none: its count is -1. */
  list<T>(read: () => T): T[] {
    const items: T[] = []
    for (let left = this.int32(); left > 0; left--) items.push(read())
    return items
  }
}

/** Reads a record of a batch (KIP-98), field by field. */
export class Cursor {
  at: number
  readonly #buffer: Buffer

  constructor(buffer: Buffer, at: number) {
    this.#buffer = buffer
    this.at = at
  }

  copy(): Cursor {
    return new Cursor(this.#buffer, this.at)
  }

  /** A zigzag number of up to 53 bits. */
  varint(): number {
    const buffer = this.#buffer
    let byte = buffer[this.at++]!
    if (byte <= 0x7f) return (byte >>> 1) ^ -(byte & 1)
    let value = byte & 0x7f
    for (let unit = 0x80; byte > 0x7f; unit *= 0x80) {
      byte = buffer[this.at++]!
      value += (byte & 0x7f) * unit
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2
  }

  /** Bytes with their length before them; -1 stands for null. */
  bytes(): Buffer | null {
    const length = this.pass()
    return length < 0 ? null : this.#buffer.subarray(this.at - length, this.at)
  }

  /** Like `bytes`: whether they equal this text, which is `length` bytes long. */
  isText(text: string, bytes: number): boolean {
    const length = this.pass()
    return length === bytes && this.#buffer.toString('utf8', this.at - length, this.at) === text
  }

  /** Moves behind them, and gives their length. */
  pass(): number {
    const length = this.varint()
    if (length > 0) this.at += length
    return length
  }
}

/** Bytes of `writeVarint`. */
export function sizeOfVarint(value: number): number {
  const bits = 32 - Math.clz32(zigzag(value))
  return Math.max(1, Math.ceil(bits / 7))
}

/** A 32-bit integer: zigzag, then seven bits a byte, the lowest first. Gives the position behind it. */
export function writeVarint(buffer: Uint8Array, at: number, value: number): number {
  let rest = zigzag(value)
  while (rest > 0x7f) {
    buffer[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  buffer[at++] = rest
  return at
}

const zigzag = (value: number): number => ((value << 1) ^ (value >> 31)) >>> 0
