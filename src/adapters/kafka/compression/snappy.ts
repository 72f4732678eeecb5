import { copyLiterals, copyMatch, Output, UnpackError, endsEarly } from './output.ts'

/** Kafka's Java clients cut what they compress into blocks, behind this head and two version numbers, of which Java only looks at the first. */
const javaHead = Buffer.from('\x82SNAPPY\0', 'latin1')
const javaHeadBytes = 16
const firstVersion = 1

/** A Java client's blocks, of one stream or of several, or the one block of any other client. */
export function unsnappy(bytes: Buffer, maxBytes: number): Buffer {
  const output = new Output(maxBytes)
  if (!isJavaHead(bytes, 0)) {
    output.add(unsnappyBlock(bytes, output))
    return output.all()
  }
  for (let at = 0; at + 4 <= bytes.length;) {
    if (isJavaHead(bytes, at)) {
      if (at + javaHeadBytes > bytes.length) throw endsEarly()
      // That of the first stream does not count either.
      if (at > 0 && bytes.readInt32BE(at + javaHead.length) < firstVersion)
        throw new UnpackError('its Snappy stream is of no known version')
      at += javaHeadBytes
      continue
    }
    const size = bytes.readInt32BE(at)
    at += 4
    if (size < 0 || at + size > bytes.length) throw endsEarly()
    output.add(unsnappyBlock(bytes.subarray(at, at + size), output))
    at += size
  }
  return output.all()
}

const isJavaHead = (bytes: Buffer, at: number): boolean =>
  bytes.subarray(at, at + javaHead.length).equals(javaHead)

const corrupt = (): UnpackError => new UnpackError('a Snappy block is corrupt')

function unsnappyBlock(source: Buffer, output: Output): Buffer {
  const end = source.length
  let at = 0
  let size = 0
  for (let unit = 1; ; unit *= 128) {
    const byte = source[at++]
    if (byte === undefined || unit > 2 ** 28) throw corrupt()
    size += (byte & 0x7f) * unit
    if (byte <= 0x7f) break
  }
  output.expect(size)
  const target = Buffer.allocUnsafeSlow(size)
  let to = 0
  while (at < end) {
    const tag = source[at++]!
    const kind = tag & 0b11
    let length = (tag >>> 2) + 1
    if (kind === 0) {
      if (length > 60) {
        const bytes = length - 60
        if (at + bytes > end) throw corrupt()
        length = source.readUIntLE(at, bytes) + 1
        at += bytes
      }
      if (length > end - at || length > size - to) throw corrupt()
      copyLiterals(source, at, target, to, length)
      at += length
    } else {
      const bytes = kind === 3 ? 4 : kind
      if (at + bytes > end) throw corrupt()
      let distance = source.readUIntLE(at, bytes)
      if (kind === 1) {
        length = ((tag >>> 2) & 0b111) + 4
        distance |= (tag >>> 5) << 8
      }
      at += bytes
      if (distance === 0 || distance > to || length > size - to) throw corrupt()
      copyMatch(target, to, distance, length)
    }
    to += length
  }
  if (to !== size) throw corrupt()
  return target
}
