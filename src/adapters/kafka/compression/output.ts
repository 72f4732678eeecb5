/** Compressed bytes that no reader can unpack, or not within the bound. The bytes alone decide it. */
export class UnpackError extends Error {}

export const endsEarly = (): UnpackError => new UnpackError('it ends too early')

export const isTooLarge = (maxBytes: number): UnpackError =>
  new UnpackError(`it is larger than ${maxBytes} bytes when unpacked`)

/** What the parts of a stream come to, one after another, up to a bound. */
export class Output {
  readonly #maxBytes: number
  readonly #parts: Buffer[] = []
  #bytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes that may still come. */
  get left(): number {
    return this.#maxBytes - this.#bytes
  }

  /** Throws where a part of that size is one too many: before it is unpacked. */
  expect(bytes: number): void {
    if (bytes > this.left) throw isTooLarge(this.#maxBytes)
  }

  add(part: Buffer): void {
    this.expect(part.length)
    this.#parts.push(part)
    this.#bytes += part.length
  }

  all(): Buffer {
    return this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts, this.#bytes)
  }
}
