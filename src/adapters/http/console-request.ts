import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { checked, answerOf } from '../../operators/check.ts'
import { settingsFor } from '../../operators/destinations/destinations.ts'
import type { LongAnswer, Operation, SessionGate, StreamAnswer } from '../../operators/operation.ts'
import type { ConsoleServices } from '../../operators/services.ts'
import { actingAs } from '../../operators/settings/writer.ts'
import type { Logger } from '../log.ts'
import type { AccessCheck } from './access-check.ts'
import { bug, send, starting } from './console-answers.ts'
import { checkContent, paced } from './console-bodies.ts'
import { answerInLines } from './progress-lines.ts'
import type { RunningRequests } from './running-requests.ts'
import { streamLines } from './stream-lines.ts'

/** Minimum rate of a list, in bytes a second: a few slow senders must not block all places for lists. */
const listRate = 10 << 10
/** How long a request may wait for the settings to be read on, in ms. */
const catchUpMs = 5_000

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
  await found.settings.catchUp(AbortSignal.any([gone, AbortSignal.timeout(catchUpMs)]))
  // So does the end of the token. Nothing before this line can take the place of this check.
  const { caller, answer: refused } = access.admit(operation, request)
  if (refused) return send(reply, refused)
  const limit = typeof operation.limit === 'function' ? operation.limit(body) : operation.limit
  const end = limit ? options.running.begin(limit) : undefined
  await actingAs(caller.name, async () => {
    const answer = await operation.handle(
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
        gone,
      },
      { ...found, settings: settingsFor(caller.role, found.settings) },
    )
    if ('status' in answer) send(reply, answer)
    else await answerAtLength(answer, operation, request, reply, { ...options, gone })
  }).finally(end)
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
