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
