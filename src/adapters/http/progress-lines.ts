import { PassThrough } from 'node:stream'
import type { FastifyReply } from 'fastify'

/** Minimum interval between two reports of progress, in ms. */
const betweenMs = 250

/**
 * Answers with lines of JSON as the work goes: `{"progress"}`, and at the end `{"result"}` or `{"error"}`. The status is
 * decided with the first line: what `run` throws before is thrown here, and gets a status of its own.
 */
export async function answerInLines(
  reply: FastifyReply,
  run: (progress: (state: object) => void) => Promise<unknown>,
  errorBody: (error: unknown) => unknown,
): Promise<void> {
  const lines = new PassThrough()
  let begun = false
  let reportedAt = -Infinity
  const write = (line: object) => {
    if (!begun) {
      begun = true
      reply.header('Content-Type', 'application/x-ndjson; charset=utf-8').send(lines)
    }
    if (!lines.destroyed) lines.write(`${JSON.stringify(line)}\n`)
  }
  const progress = (state: object) => {
    // Slow readers get fewer of them.
    if (performance.now() - reportedAt < betweenMs || lines.writableNeedDrain) return
    reportedAt = performance.now()
    write({ progress: state })
  }
  try {
    write({ result: await run(progress) })
  } catch (error) {
    if (!begun) throw error
    write({ error: errorBody(error) })
  } finally {
    lines.end()
  }
}
