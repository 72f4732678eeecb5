/** Up to this many UTF-16 units, a loop is faster than a call of Node's. */
const maxUnits = 24

/** Writes a short ASCII text at `at`, where there must be room for it, and gives its length; -1 for any other text. */
export function writeShortAscii(text: string, buffer: Uint8Array, at: number): number {
  const { length } = text
  if (length > maxUnits) return -1
  for (let index = 0; index < length; index++) {
    const code = text.charCodeAt(index)
    if (code > 0x7f) return -1
    buffer[at + index] = code
  }
  return length
}
