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
