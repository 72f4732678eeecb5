import { PassThrough } from 'node:stream'
import type { FastifyReply } from 'fastify'
import type { StreamAnswer } from '../../console/api/operation.ts'

/** How often it is looked at whether a stream may go on. */
const judgeMs = 1_000
/** What a client that reads slowly has waiting, at most, beside one line more; in bytes. */
const maxBuffered = 256 << 10

export interface StreamLimits {
  signal: AbortSignal
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
  { signal, refusal, errorBody }: StreamLimits,
): Promise<void> {
  const lines = new PassThrough()
  lines.on('error', () => {})
  const write = (text: string) => {
    if (!lines.destroyed && !lines.writableEnded) lines.write(`${text}\n`)
  }
  const hasRoom = () => lines.writableLength + lines.readableLength < maxBuffered
  const refused = new AbortController()
  const { ended } = await stream({ hasRoom, write }, AbortSignal.any([signal, refused.signal]))
  // A connection that stayed open behind it would hold up the console's stop.
  reply.headers({ 'Content-Type': 'application/x-ndjson; charset=utf-8', Connection: 'close' }).send(lines)
  // The head goes out with the first bytes, and the first call may be long in coming.
  reply.raw.flushHeaders()
  let refusedBy: unknown = null
  const judging = setInterval(() => {
    refusedBy = refusal()
    if (refusedBy !== null) refused.abort()
  }, judgeMs)
  try {
    await ended
    if (refusedBy !== null) write(JSON.stringify({ error: refusedBy }))
  } catch (error) {
    write(JSON.stringify({ error: errorBody(error) }))
  } finally {
    clearInterval(judging)
    lines.end()
  }
}
