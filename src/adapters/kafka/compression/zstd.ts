import { promisify } from 'node:util'
// By name it could not be loaded on an older Node, which is to be told so.
import zlib from 'node:zlib'
import { Output, UnpackError, endsEarly, zlibError } from './output.ts'

const decompress = promisify(zlib.zstdDecompress)

/** RFC 8878. Sixteen numbers stand for frames to be skipped. */
const frameMagic = 0xfd2fb528
const skippableMagic = 0x184d2a50
const skippableMask = 0xfffffff0
const dictionaryIdBytes = [0, 1, 2, 4] as const
const rleBlock = 1
const reservedBlock = 3

/**
 * All frames of a Zstandard stream: Node's own reads the first one, and passes over what follows. Like Java's, it does
 * not miss what was cut off of a further one.
 */
export async function unzstd(bytes: Buffer, maxBytes: number): Promise<Buffer> {
  const output = new Output(maxBytes)
  for (let at = 0; at < bytes.length;) {
    const end = frameEnd(bytes, at)
    if (end > bytes.length) {
      if (at > 0) break
      throw endsEarly()
    }
    if (!isSkippable(bytes.readUInt32LE(at))) {
      const frame = decompress(bytes.subarray(at, end), { maxOutputLength: Math.max(1, output.left) })
      output.add(
        await frame.catch((error: unknown) => {
          throw zlibError(error, maxBytes)
        }),
      )
    }
    at = end
  }
  return output.all()
}

/** Where a frame ends, by the sizes that it names; beyond the end where it is cut off. Throws UnpackError. */
function frameEnd(bytes: Buffer, start: number): number {
  let at = start + 4
  if (at > bytes.length) throw endsEarly()
  const magic = bytes.readUInt32LE(start)
  if (isSkippable(magic)) return at + 4 > bytes.length ? Infinity : at + 4 + bytes.readUInt32LE(at)
  if (magic !== frameMagic) throw new UnpackError('it is not in Zstandard format')
  const descriptor = bytes[at++] ?? 0
  const isSingleSegment = (descriptor & 0b100000) !== 0
  const sizeFlag = descriptor >>> 6
  const contentSizeBytes = sizeFlag === 0 ? Number(isSingleSegment) : 2 ** sizeFlag
  at += isSingleSegment ? 0 : 1
  at += dictionaryIdBytes[(descriptor & 0b11) as 0 | 1 | 2 | 3] + contentSizeBytes
  for (let isLast = false; !isLast;) {
    at += 3
    if (at > bytes.length) return Infinity
    const head = bytes.readUIntLE(at - 3, 3)
    const type = (head >>> 1) & 0b11
    if (type === reservedBlock) throw new UnpackError('it has a Zstandard block of no known type')
    at += type === rleBlock ? 1 : head >>> 3
    isLast = (head & 1) !== 0
  }
  return at + (descriptor & 0b100 ? 4 : 0)
}

const isSkippable = (magic: number): boolean => (magic & skippableMask) >>> 0 === skippableMagic
