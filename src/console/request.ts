import { type Readable, PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from '../adapters/log.ts'
import { checked, answerOf, RequestRefused } from '../operators/check.ts'
import { servicesFor } from '../operators/limited.ts'
import type {
  LongAnswer,
  Operation,
  SessionGate,
  StreamAnswer,
  RequestLimit,
} from '../operators/operation.ts'
import type { ConsoleServices } from '../operators/services.ts'
import { actingAs } from '../operators/settings/writer.ts'
import type { AccessCheck } from './access.ts'
import { bug, send, starting } from './answers.ts'
import { checkContent, paced } from './bodies.ts'

/** Minimum rate of a list, in bytes a second: a few slow senders must not block all places for lists. */
const listRate = 10 << 10
/** How long a request may wait for the settings to be read on, in ms. */
const catchUpMs = 5_000
/** And one that is answered all the same: the page around all others waits for it. */
const shortCatchUpMs = 1_000

/** How long after the last look a read that still waits has Kafka looked at again, in ms. */
const lookEveryMs = 5_000
/** And how long it may take though Kafka answers, in ms: one of its brokers may be away, and a large topic takes minutes. */
const readMs = 600_000

export interface AnsweringOptions {
  services(): ConsoleServices | null
  log: Logger
  idleMs: number
  access: AccessCheck
  running: RunningRequests
  session: SessionGate
  /** Aborts when the console begins to stop. */
  closing: AbortSignal
}

/** Answers one request by its operation. Throws what `answerTo` makes an answer of. */
export async function answerRequest(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  options: AnsweringOptions,
  stopping: AbortSignal,
): Promise<void> {
  const { services, access } = options
  const { headers } = request
  const contentType = headers['content-type']?.split(';')[0]!.trim().toLowerCase() ?? null
  checkContent(operation, contentType, headers['content-encoding'])
  const { streams } = operation
  const { params, query, body } = checked(operation, {
    params: request.params,
    query: request.query,
    body: streams ? undefined : request.body,
  })
  const found = services()
  if (found === null) return send(reply, starting)
  const left = new AbortController()
  reply.raw.once('close', () => left.abort())
  const gone = AbortSignal.any([left.signal, stopping])
  // What another console has changed a moment ago counts here too.
  const { needsNoKafka } = operation
  const waitMs = needsNoKafka ? shortCatchUpMs : catchUpMs
  const caughtUp = found.settings.catchUp(AbortSignal.any([gone, AbortSignal.timeout(waitMs)]))
  await (needsNoKafka ? caughtUp.catch(() => {}) : caughtUp)
  // So does the end of the token. Nothing before this line can take the place of this check.
  const { caller, answer: refused } = access.admit(operation, request)
  if (refused) return send(reply, refused)
  const limit = typeof operation.limit === 'function' ? operation.limit(body) : operation.limit
  const end = limit ? options.running.begin(limit) : undefined
  const handle = (signal: AbortSignal) =>
    operation.handle(
      {
        caller,
        session: options.session,
        params,
        query,
        body,
        lines: streams
          ? paced(request.body as Readable, { graceMs: options.idleMs, perSecond: listRate })
          : nothing(),
        contentType,
        ifMatch: headers['if-match'] ?? null,
        idempotencyKey: textOf(headers['idempotency-key']),
        stopping,
        gone: signal,
      },
      servicesFor(caller, found),
    )
  await actingAs(caller.name, async () => {
    const isRead = operation.method === 'GET'
    const answer = await (isRead ? boundedRead(handle, gone, found.settings) : handle(gone))
    if ('status' in answer) send(reply, answer)
    else await answerAtLength(answer, operation, request, reply, { ...options, gone })
  }).finally(end)
}

/**
 * A read waits for brokers that are away as long as it is let. Here it ends once they do not answer: with what the look at the
 * settings' log throws. What has progress, and streams, only begin within.
 */
async function boundedRead<T>(
  read: (signal: AbortSignal) => Promise<T>,
  gone: AbortSignal,
  settings: Pick<ConsoleServices['settings'], 'catchUp'>,
): Promise<T> {
  const [away, over] = [new AbortController(), new AbortController()]
  const kafkaFails = untilKafkaFails(settings, over.signal)
  try {
    return await Promise.race([read(AbortSignal.any([gone, away.signal])), kafkaFails])
  } catch (error) {
    away.abort()
    throw error
  } finally {
    over.abort()
  }
}

async function untilKafkaFails(
  settings: Pick<ConsoleServices['settings'], 'catchUp'>,
  over: AbortSignal,
): Promise<never> {
  for (let waitedMs = 0; waitedMs < readMs; waitedMs += lookEveryMs) {
    await delay(lookEveryMs, undefined, { signal: over, ref: false })
    await settings.catchUp(AbortSignal.any([over, AbortSignal.timeout(catchUpMs)]))
  }
  throw new RequestRefused(
    'unavailable',
    `it was not read to its end within ${readMs / 60_000} minutes: a broker may be away; nothing was changed`,
  )
}

/** Answers with what may take as long as it needs. */
async function answerAtLength(
  answer: LongAnswer | StreamAnswer,
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  { log, access, idleMs, closing, gone }: AnsweringOptions & { gone: AbortSignal },
): Promise<void> {
  const { headers, raw } = request
  if (raw.complete) raw.socket.setTimeout(0)
  else raw.once('end', () => raw.socket.setTimeout(0))
  const { status } = operation.success
  const errorBody = (error: unknown) => {
    const { body } = answerOf(error) ?? bug
    if (body === bug.body) log.error({ err: error, operation: operation.id }, 'a request failed by a bug')
    return body
  }
  const refusal = () => access.admit(operation, request).answer?.body ?? null
  if ('stream' in answer)
    await streamLines(reply, answer, { signal: AbortSignal.any([gone, closing]), idleMs, refusal, errorBody })
  else if (/\bapplication\/x-ndjson\b/.test(headers.accept ?? ''))
    await answerInLines(reply.code(status), answer.run, errorBody)
  else {
    const body = await answer.run(() => {})
    send(reply, { status, headers: answer.headers?.(body) ?? {}, body })
  }
}

const textOf = (header: string | string[] | undefined): string | null =>
  (Array.isArray(header) ? header.join(',') : header) ?? null

async function* nothing(): AsyncGenerator<Uint8Array> {}

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

/** Counts the requests that run, where there may be only some of them at once. */
export class RunningRequests {
  readonly #counts = new Map<RequestLimit, number>()

  /** Throws RequestRefused `busy`. What it returns is to be called once, when the request has ended. */
  begin(limit: RequestLimit): () => void {
    const running = this.#counts.get(limit) ?? 0
    if (running >= limit.max) throw new RequestRefused('busy', limit.busy)
    this.#counts.set(limit, running + 1)
    return () => this.#counts.set(limit, this.#counts.get(limit)! - 1)
  }
}
