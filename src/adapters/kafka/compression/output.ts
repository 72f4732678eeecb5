/** Shorter ones are copied sooner byte by byte than by a call. */
const fewBytes = 24

/**
 * Appends to `target` at `at` what stands `distance` bytes before, which may reach into what it appends (LZ4, Snappy).
 * Both lie within `target`.
 */
export function copyMatch(target: Buffer, at: number, distance: number, length: number): void {
  const end = at + length
  if (length <= fewBytes) {
    for (let from = at - distance; at < end;) target[at++] = target[from++]!
    return
  }
  const from = at - distance
  // What was copied is there to be copied: twice as much each time.
  for (let has = distance; at < end; has *= 2) {
    const size = Math.min(has, end - at)
    target.copyWithin(at, from, from + size)
    at += size
  }
}

export function copyLiterals(source: Buffer, from: number, target: Buffer, at: number, length: number): void {
  if (length > fewBytes) source.copy(target, at, from, from + length)
  else for (const end = from + length; from < end;) target[at++] = source[from++]!
}

/** Says something about this process, and nothing about the bytes. */
const outOfMemory = ['Z_MEM_ERROR', 'ZSTD_error_memory_allocation', 'ERR_ZLIB_INITIALIZATION_FAILED']

/** What Node's zlib throws: an UnpackError where the bytes are the reason. */
export function zlibError(error: unknown, maxBytes: number): unknown {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === undefined || outOfMemory.includes(code)) return error
  return code === 'ERR_BUFFER_TOO_LARGE' ? isTooLarge(maxBytes) : new UnpackError(message)
}

/** Compressed bytes that no reader can unpack, or not within the bound. The bytes alone decide it. */
export class UnpackError extends Error {}

export const endsEarly = (): UnpackError => new UnpackError('it ends too early')

const isTooLarge = (maxBytes: number): UnpackError =>
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
