import { xxHash32 } from 'js-xxhash'
import { ownCopy } from '../../../core/own-bytes.ts'
import { copyLiterals, copyMatch, Output, UnpackError, endsEarly } from './output.ts'

/** LZ4's frame format, version 1. */
const magic = 0x184d2204
const flags = {
  version: 0b11000000,
  independent: 0b100000,
  blockChecksum: 0b10000,
  contentSize: 0b1000,
  contentChecksum: 0b100,
}
const reservedFlags = 0b11
const version1 = 0b01000000
const maxBlockBytes = [65_536, 262_144, 1_048_576, 4_194_304]
const isPlain = 0x80000000
const minMatch = 4

/**
 * An LZ4 frame, as Kafka's Java clients read it: blocks do not depend on each other, checksums of the head and of
 * blocks count, the size and the checksum of the content do not, and what follows the frame is passed over.
 */
export function unlz4(bytes: Buffer, maxBytes: number): Buffer {
  const at4 = (at: number): number => {
    if (at + 4 > bytes.length) throw endsEarly()
    return bytes.readUInt32LE(at)
  }
  if (at4(0) !== magic) throw new UnpackError('it is not in LZ4 frame format')
  const flag = bytes[4] ?? 0
  const sizes = bytes[5] ?? 0
  if ((flag & flags.version) !== version1 || flag & reservedFlags || sizes & 0b10001111)
    throw new UnpackError('its LZ4 frame is of no known version')
  if (!(flag & flags.independent)) throw new UnpackError('its LZ4 blocks depend on each other')
  const largest = maxBlockBytes[(sizes >>> 4) - 4]
  if (largest === undefined) throw new UnpackError('its LZ4 blocks are of no known size')
  let at = flag & flags.contentSize ? 14 : 6
  if (at >= bytes.length) throw endsEarly()
  if (bytes[at] !== ((xxHash32(bytes.subarray(4, at), 0) >>> 8) & 0xff))
    throw new UnpackError('the checksum of its LZ4 head is wrong')
  at++
  const output = new Output(maxBytes)
  let block: Buffer | null = null
  for (;;) {
    const head = at4(at)
    const size = head & ~isPlain
    at += 4
    if (size === 0) {
      if (flag & flags.contentChecksum) at4(at)
      return output.all()
    }
    if (size > largest) throw new UnpackError('it has an LZ4 block that is larger than its head says')
    if (at + size > bytes.length) throw endsEarly()
    if (head & isPlain) output.add(bytes.subarray(at, at + size))
    else {
      block ??= Buffer.allocUnsafeSlow(largest)
      output.add(ownCopy(block.subarray(0, unlz4Block(bytes.subarray(at, at + size), block))))
    }
    if (flag & flags.blockChecksum) {
      if (xxHash32(bytes.subarray(at, at + size), 0) !== at4(at + size))
        throw new UnpackError('the checksum of an LZ4 block is wrong')
      at += 4
    }
    at += size
  }
}

const corrupt = (): UnpackError => new UnpackError('an LZ4 block is corrupt')

/** Gives the number of bytes that it came to. */
function unlz4Block(source: Buffer, target: Buffer): number {
  const end = source.length
  let at = 0
  let to = 0
  /** Lengths of 15 and more go on in further bytes. */
  const lengthOf = (nibble: number): number => {
    let length = nibble
    if (nibble < 15) return length
    for (;;) {
      if (at >= end) throw corrupt()
      const byte = source[at++]!
      length += byte
      if (byte < 255) return length
    }
  }
  while (at < end) {
    const token = source[at++]!
    const literals = lengthOf(token >>> 4)
    if (literals > end - at || literals > target.length - to) throw corrupt()
    copyLiterals(source, at, target, to, literals)
    at += literals
    to += literals
    // The last sequence has no match.
    if (at === end) return to
    if (at + 2 > end) throw corrupt()
    const distance = source[at]! | (source[at + 1]! << 8)
    at += 2
    const length = lengthOf(token & 15) + minMatch
    if (distance === 0 || distance > to || length > target.length - to) throw corrupt()
    copyMatch(target, to, distance, length)
    to += length
  }
  throw corrupt()
}
