import { z } from 'zod'
import { maxFaults, type Fault } from '../../core/settings/fault.ts'
import type { ErrorCode } from '../../errors.ts'
import { messageOf, PostriderError } from '../../errors.ts'
import { RequestKeyReused, SettingsRefused } from '../../operators/settings/writer.ts'
import { UsersRefused } from '../../operators/deletions/user-ids.ts'
import type { ApiAnswer } from './operation.ts'

export interface FieldFault {
  /** As the request names it: `name`, `urls.0.url`, a parameter of the query, or a header. */
  field: string
  message: string
}

/** As many fields an answer names. */
export const maxFields = maxFaults

/** Every code that an error can carry, with its status. */
const statusOf = {
  invalid_request: 400,
  invalid_http: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  too_slow: 408,
  conflict: 409,
  body_too_large: 413,
  unsupported_media_type: 415,
  idempotency_key_reused: 422,
  busy: 429,
  head_too_large: 431,
  internal_error: 500,
  secrets_key: 500,
  setup: 503,
  unavailable: 503,
} as const

export type ApiErrorCode = keyof typeof statusOf
export const apiErrorCodes = Object.keys(statusOf) as [ApiErrorCode, ...ApiErrorCode[]]

export const errorSchema = z
  .object({
    code: z.enum(apiErrorCodes).describe('Says what to do; the message is for people and may change.'),
    message: z.string(),
    fields: z
      .array(
        z.object({
          field: z.string().describe('As the request names it; a header or parameter by its name.'),
          message: z.string(),
        }),
      )
      .max(maxFields)
      .describe('The fields that are wrong. Empty where no field is at fault.'),
  })
  .meta({ id: 'Error' })

/** How long to wait before another try, in seconds. */
const retryAfterSeconds = 5

export function refusal(code: ApiErrorCode, message: string, fields: readonly FieldFault[] = []): ApiAnswer {
  const again = code === 'unavailable' || code === 'busy'
  return {
    status: statusOf[code],
    body: { code, message, fields: fields.slice(0, maxFields) },
    ...(again && { headers: { 'Retry-After': String(retryAfterSeconds) } }),
  }
}

/** A request that the API itself refuses. */
export class RequestRefused extends Error {
  readonly answer: ApiAnswer

  constructor(code: ApiErrorCode, message: string, fields: readonly FieldFault[] = []) {
    super(message)
    this.answer = refusal(code, message, fields)
  }
}

/** One wrong field, named in the message too. */
export const wrongField = (field: string, message: string): RequestRefused =>
  new RequestRefused('invalid_request', `${field}: ${message}`, [{ field, message }])

const codeOf: Record<ErrorCode, ApiErrorCode> = {
  usage: 'invalid_request',
  conflict: 'conflict',
  not_found: 'not_found',
  kafka_unavailable: 'unavailable',
  registry_unavailable: 'unavailable',
  setup: 'setup',
  undecodable: 'internal_error',
  secrets_key: 'secrets_key',
  invariant: 'internal_error',
  local: 'internal_error',
}

/** The answer to what a handler threw; null for a bug. */
export function answerOf(error: unknown): ApiAnswer | null {
  if (error instanceof RequestRefused) return error.answer
  if (error instanceof RequestKeyReused)
    return refusal('idempotency_key_reused', error.message, [
      { field: 'Idempotency-Key', message: error.message },
    ])
  if (error instanceof SettingsRefused) return refused(error)
  if (error instanceof UsersRefused) return refusal('invalid_request', error.message, named(error.faults))
  if (error instanceof PostriderError) {
    const code = codeOf[error.code]
    return code === 'internal_error' ? null : refusal(code, messageOf(error))
  }
  if (error instanceof Error && error.name.startsWith('KafkaJS'))
    return refusal('unavailable', `Kafka: ${messageOf(error)}`)
  return null
}

const named = (faults: readonly Fault[]): FieldFault[] =>
  faults.map(({ field, message }) => ({ field, message }))

/** What does not exist is a 404 where the path names it, and a wrong field where the body does. */
function refused({ code, message, faults }: SettingsRefused): ApiAnswer {
  const fields = named(faults)
  const isPath = faults.some((fault) => fault.code === 'not_found' && fault.field === 'id')
  if (code === 'not_found' && !isPath) return refusal('invalid_request', message, fields)
  return refusal(codeOf[code], message, fields)
}
