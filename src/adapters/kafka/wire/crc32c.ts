/** CRC-32C (Castagnoli), of `buffer` from `from` to `to`, eight bytes at a time. */
export function crc32c(buffer: Uint8Array, from: number, to: number): number {
  let crc = -1
  let at = from
  for (; at + 8 <= to; at += 8) {
    crc ^= buffer[at]! | (buffer[at + 1]! << 8) | (buffer[at + 2]! << 16) | (buffer[at + 3]! << 24)
    crc =
      table[1792 + (crc & 0xff)]! ^
      table[1536 + ((crc >>> 8) & 0xff)]! ^
      table[1280 + ((crc >>> 16) & 0xff)]! ^
      table[1024 + (crc >>> 24)]! ^
      table[768 + buffer[at + 4]!]! ^
      table[512 + buffer[at + 5]!]! ^
      table[256 + buffer[at + 6]!]! ^
      table[buffer[at + 7]!]!
  }
  for (; at < to; at++) crc = table[(crc ^ buffer[at]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/** For each byte, and for each byte followed by one to seven zero bytes. */
const table = new Int32Array(8 * 256)
for (let byte = 0; byte < 256; byte++) {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  table[byte] = crc
}
for (let at = 256; at < table.length; at++) {
  const before = table[at - 256]!
  table[at] = table[before & 0xff]! ^ (before >>> 8)
}
