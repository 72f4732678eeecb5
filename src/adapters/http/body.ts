import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { bodyTooLarge, overloaded, refusal, tooSlow } from '../../collector/answers.ts'
import type { CollectAnswer } from '../../collector/answers.ts'
import type { Reservation } from '../../collector/request-budget.ts'
import { SenderPatience } from './sender-patience.ts'
import { TurnsBySender } from './turns-by-sender.ts'

const unzip = promisify(gunzip)
const noBytes = Buffer.alloc(0)
/** What comes out of a body is counted once it is there, and may be a thousand times what came in: few at a time. */
const unpacking = new TurnsBySender(16)

/** A body that has begun to arrive takes part of the budget: it must arrive at this rate, in bytes. */
const bodyPace = { graceMs: 5_000, perSecond: 2 << 10 }

/** What a body was refused with, or `null` when its sender has gone away. */
export class BodyRefused extends Error {
  readonly answer: CollectAnswer | null

  constructor(answer: CollectAnswer | null) {
    super('the body was refused')
    this.answer = answer
  }
}

/**
 * The text of a request's body, whatever its Content-Type. Arriving bytes are counted against the budget as they come,
 * and against the limit before and after decompression. Rejects with BodyRefused; what is left of the body is then
 * read and thrown away, for as long as requests may take, so that the sender gets to see the answer.
 */
export async function readBody(
  message: IncomingMessage,
  reservation: Reservation,
  maxBytes: number,
): Promise<string> {
  // Its sender may have left while its source was looked up: nothing of it would come any more, nor its end.
  if (message.destroyed) throw new BodyRefused(null)
  const encoding = message.headers['content-encoding']?.trim().toLowerCase() ?? ''
  if (!['', 'identity', 'gzip', 'x-gzip'].includes(encoding))
    throw new BodyRefused(refusal(400, 'encoding_unknown', 'Content-Encoding must be gzip, or none'))
  const length = Number(message.headers['content-length'] ?? 0)
  if (length > maxBytes) throw new BodyRefused(bodyTooLarge(maxBytes))
  // Otherwise many bodies that arrive side by side would fill the budget with their beginnings, and none would have room
  // for its end. Nothing is reserved: a sender that announces much and sends nothing would take it from others.
  if (!reservation.hasBytes(length)) throw new BodyRefused(overloaded)
  const bytes = await allOf(message, reservation, length, maxBytes)
  // JSON never begins so: some clients do not say that they compress.
  const isGzip = encoding.endsWith('gzip') || (bytes[0] === 0x1f && bytes[1] === 0x8b)
  if (!isGzip) return textOf(bytes)
  return textOf(await unpacking.run(reservation.sender, () => unzipped(bytes, reservation, maxBytes)))
}

/** `expected` is the length that the head says; 0 where it says none. */
function allOf(
  message: IncomingMessage,
  reservation: Reservation,
  expected: number,
  maxBytes: number,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    /** What has come, and room for more: at most as much again. */
    let bytes: Buffer = noBytes
    let length = 0
    let patience: SenderPatience | null = null
    const settle = (answer: CollectAnswer | null) => {
      patience?.stop()
      message.off('data', onData).off('end', onEnd).off('close', onGone).off('error', onGone)
      // The rest may be on its way for long, and the listener below would keep what is not counted any more.
      bytes = noBytes
      message.on('error', () => {})
      message.resume()
      reject(new BodyRefused(answer))
    }
    const onData = (chunk: Buffer) => {
      const at = length
      length += chunk.length
      if (length > maxBytes) return settle(bodyTooLarge(maxBytes))
      if (!reservation.takeBytes(chunk.length)) return settle(overloaded)
      // Nearly always the body is there at once: nothing is copied, and nothing waits.
      if (at === 0) bytes = chunk
      else {
        // Kept one by one, chunks of a byte would take hundreds of times what is counted for them.
        const most = Math.max(length, expected || maxBytes)
        if (length > bytes.length) bytes = moved(bytes, Math.min(2 * length, most))
        chunk.copy(bytes, at)
      }
      if (length === expected) return
      if (patience === null) patience = new SenderPatience(bodyPace)
      else patience.got(chunk.length)
      patience.wait(() => settle(tooSlow))
    }
    const onEnd = () => {
      patience?.stop()
      message.off('close', onGone).off('error', onGone)
      resolve(length === bytes.length ? bytes : bytes.subarray(0, length))
    }
    const onGone = () => settle(null)
    message.on('data', onData).on('end', onEnd).on('close', onGone).on('error', onGone)
  })
}

/** The bytes at the beginning of a larger block of their own. */
function moved(bytes: Buffer, size: number): Buffer {
  const larger = Buffer.allocUnsafeSlow(size)
  larger.set(bytes)
  return larger
}

/** Stops as soon as more than the limit has come out, however much is still to come. */
async function unzipped(bytes: Buffer, reservation: Reservation, maxBytes: number): Promise<Buffer> {
  let out: Buffer
  try {
    out = await unzip(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    const tooLarge = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    throw new BodyRefused(
      tooLarge
        ? bodyTooLarge(maxBytes)
        : refusal(400, 'invalid_gzip', 'the body is not what gzip makes, or not all of it'),
    )
  }
  if (!reservation.takeBytes(out.length)) throw new BodyRefused(overloaded)
  return out
}

function textOf(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw new BodyRefused(refusal(400, 'invalid_json', 'the body is not UTF-8'))
  return bytes.toString('utf8')
}
