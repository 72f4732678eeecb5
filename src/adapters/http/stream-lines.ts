import { PassThrough } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { StreamAnswer } from '../../operators/operation.ts'

/** How often it is looked at whether a stream may go on. */
const judgeMs = 1_000
/** What a client that reads slowly has waiting, at most, beside one line more; in bytes. */
const maxBuffered = 256 << 10

export interface StreamLimits {
  signal: AbortSignal
  /** A client that takes nothing of what waits for it for that long is disconnected, in ms: streams have few places. */
  idleMs: number
  /** The body of an error once it may not go on, because its token was revoked; null while it may. */
  refusal(): unknown
  errorBody(error: unknown): unknown
}

/**
 * Answers with lines of JSON for as long as there are any. The status is decided once it begins: what is thrown before
 * gets one of its own. An error after that is the last line.
 */
export async function streamLines(
  reply: FastifyReply,
  { stream }: StreamAnswer,
  { signal, idleMs, refusal, errorBody }: StreamLimits,
): Promise<void> {
  const lines = new PassThrough()
  lines.on('error', () => {})
  let written = 0
  const write = (text: string) => {
    if (lines.destroyed || lines.writableEnded) return
    const bytes = Buffer.from(`${text}\n`)
    written += bytes.length
    lines.write(bytes)
  }
  const waiting = () => lines.writableLength + lines.readableLength
  const hasRoom = () => waiting() < maxBuffered
  const refused = new AbortController()
  const { ended } = await stream({ hasRoom, write }, AbortSignal.any([signal, refused.signal]))
  // A connection that stayed open behind it would hold up the console's stop.
  reply.headers({ 'Content-Type': 'application/x-ndjson; charset=utf-8', Connection: 'close' }).send(lines)
  // The head goes out with the first bytes, and the first call may be long in coming.
  reply.raw.flushHeaders()
  let refusedBy: unknown = null
  let isStalled = false
  let taken = { bytes: 0, at: performance.now() }
  const judging = setInterval(() => {
    refusedBy = refusal()
    const bytes = written - waiting()
    if (waiting() === 0 || bytes !== taken.bytes) taken = { bytes, at: performance.now() }
    isStalled = performance.now() - taken.at >= idleMs
    if (refusedBy !== null || isStalled) refused.abort()
  }, judgeMs)
  try {
    await ended
    if (refusedBy !== null) write(JSON.stringify({ error: refusedBy }))
  } catch (error) {
    write(JSON.stringify({ error: errorBody(error) }))
  } finally {
    clearInterval(judging)
    lines.end()
    // It would wait for ever to be read to its end.
    if (isStalled) reply.raw.destroy()
  }
}
