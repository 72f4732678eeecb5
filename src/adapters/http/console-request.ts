import type { Readable } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { checked } from '../../console/api/check.ts'
import { answerOf } from '../../console/api/errors.ts'
import type { Caller, Operation, SessionGate } from '../../console/api/operation.ts'
import type { ConsoleServices } from '../../console/api/services.ts'
import type { Logger } from '../log.ts'
import type { AccessCheck } from './access-check.ts'
import { bug, send, starting, tokenRefused } from './console-answers.ts'
import { checkContent, paced } from './console-bodies.ts'
import { answerInLines } from './progress-lines.ts'
import { streamLines } from './stream-lines.ts'

/** Minimum rate of a list, in bytes a second: a few slow senders must not block all places for lists. */
const listRate = 10 << 10
/** How long a request may wait for the settings to be read on, in ms. */
const catchUpMs = 5_000

export interface AnsweringOptions {
  services(): ConsoleServices | null
  log: Logger
  idleMs: number
  caller: Caller
  access: AccessCheck
  session: SessionGate
  /** Aborts when the console begins to stop. */
  closing: AbortSignal
}

/** Answers one request by its operation. Throws what `answerTo` makes an answer of. */
export async function answerRequest(
  operation: Operation,
  request: FastifyRequest,
  reply: FastifyReply,
  { services, log, idleMs, caller, access, session, closing }: AnsweringOptions,
  stopping: AbortSignal,
): Promise<void> {
  const { headers, raw } = request
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
  // So does the end of the token.
  const verdict = operation.isOpen ? null : access.judge(headers)
  if (verdict && 'refused' in verdict) return send(reply, tokenRefused(verdict.refused))
  const answer = await operation.handle(
    {
      caller,
      session,
      params,
      query,
      body,
      lines: streams ? paced(request.body as Readable, { graceMs: idleMs, perSecond: listRate }) : nothing(),
      contentType,
      ifMatch: headers['if-match'] ?? null,
      idempotencyKey: textOf(headers['idempotency-key']),
      stopping,
      gone,
    },
    found,
  )
  if ('status' in answer) return send(reply, answer)
  // From here on it may take as long as it needs.
  if (raw.complete) raw.socket.setTimeout(0)
  else raw.once('end', () => raw.socket.setTimeout(0))
  const { status } = operation.success
  const errorBody = (error: unknown) => {
    const { body } = answerOf(error) ?? bug
    if (body === bug.body) log.error({ err: error, operation: operation.id }, 'a request failed by a bug')
    return body
  }
  const refusal = () => {
    const now = access.judge(headers)
    return 'refused' in now ? tokenRefused(now.refused).body : null
  }
  if ('stream' in answer)
    await streamLines(reply, answer, { signal: AbortSignal.any([gone, closing]), refusal, errorBody })
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
