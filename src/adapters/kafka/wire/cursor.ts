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
