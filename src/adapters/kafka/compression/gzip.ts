import { promisify } from 'node:util'
// By name it could not be loaded on an older Node, which is to be told so.
import zlib, { inflateRaw } from 'node:zlib'
import { Output, UnpackError, endsEarly, zlibError } from './output.ts'

/** With `info`, Node also gives the stream, which says how much of the input it took. */
const inflate = promisify(inflateRaw) as unknown as (
  bytes: Buffer,
  options: { maxOutputLength: number; info: true },
) => Promise<{ buffer: Buffer; engine: { bytesWritten: number } }>

/** RFC 1952. */
const headBytes = 10
const trailerBytes = 8
const deflate = 8
const flags = { checksum: 2, extra: 4, name: 8, comment: 16 }
/** Java looks for a further member only where more than this follows: none is shorter. */
const maxRest = 18

/**
 * All members of a gzip stream. As Java's, it ends at whatever follows a member and does not begin as another one;
 * Node's own ends there with an error.
 */
export async function gunzip(bytes: Buffer, maxBytes: number): Promise<Buffer> {
  const output = new Output(maxBytes)
  let at = behindHead(bytes, 0)
  for (;;) {
    const { buffer, engine } = await inflate(bytes.subarray(at), {
      // Of nothing Node takes no bound.
      maxOutputLength: Math.max(1, output.left),
      info: true,
    }).catch((error: unknown) => {
      throw zlibError(error, maxBytes)
    })
    output.add(buffer)
    at += engine.bytesWritten
    if (at + trailerBytes > bytes.length) throw endsEarly()
    if (bytes.readUInt32LE(at) !== zlib.crc32(buffer) || bytes.readUInt32LE(at + 4) !== buffer.length)
      throw new UnpackError('its gzip checksum or length is wrong')
    at += trailerBytes
    if (bytes.length - at <= maxRest) return output.all()
    try {
      at = behindHead(bytes, at)
    } catch {
      return output.all()
    }
  }
}

/** Throws UnpackError where no member begins. */
function behindHead(bytes: Buffer, start: number): number {
  if (start + headBytes > bytes.length) throw endsEarly()
  if (bytes.readUInt16BE(start) !== 0x1f8b || bytes[start + 2] !== deflate)
    throw new UnpackError('it is not in gzip format')
  const flag = bytes[start + 3]!
  let at = start + headBytes
  if (flag & flags.extra) at = within(bytes, at + 2) + bytes.readUInt16LE(at)
  for (const text of [flags.name, flags.comment]) {
    if (!(flag & text)) continue
    const end = bytes.indexOf(0, at)
    if (end < 0) throw endsEarly()
    at = end + 1
  }
  if (flag & flags.checksum) {
    const end = within(bytes, at + 2)
    if (bytes.readUInt16LE(at) !== (zlib.crc32(bytes.subarray(start, at)) & 0xffff))
      throw new UnpackError('the checksum of its gzip header is wrong')
    at = end
  }
  return within(bytes, at)
}

function within(bytes: Buffer, at: number): number {
  if (at > bytes.length) throw endsEarly()
  return at
}
