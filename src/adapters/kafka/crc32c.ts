/** CRC-32C (Castagnoli), of `buffer` from `from` to `to`, four bytes at a time. */
export function crc32c(buffer: Buffer, from: number, to: number): number {
  let crc = -1
  let at = from
  for (; at + 4 <= to; at += 4) {
    crc ^= buffer[at]! | (buffer[at + 1]! << 8) | (buffer[at + 2]! << 16) | (buffer[at + 3]! << 24)
    crc =
      crcTable[768 + (crc & 0xff)]! ^
      crcTable[512 + ((crc >>> 8) & 0xff)]! ^
      crcTable[256 + ((crc >>> 16) & 0xff)]! ^
      crcTable[crc >>> 24]!
  }
  for (; at < to; at++) crc = crcTable[(crc ^ buffer[at]!) & 0xff]! ^ (crc >>> 8)
  return ~crc >>> 0
}

/** For each byte, and for each byte followed by one, two and three zero bytes. */
const crcTable = new Int32Array(4 * 256)
for (let byte = 0; byte < 256; byte++) {
  let crc = byte
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1
  crcTable[byte] = crc
}
for (let at = 256; at < crcTable.length; at++) {
  const before = crcTable[at - 256]!
  crcTable[at] = crcTable[before & 0xff]! ^ (before >>> 8)
}
