// Checks what comes in by the schemas of its operation, and names everything that is wrong.
import { z } from 'zod'
import { maxFaults, type Fault } from '../core/decision.ts'
import { type ErrorCode, messageOf, PostriderError } from '../errors.ts'
import { UsersRefused } from './deletions/user-ids.ts'
import type { Operation, ApiAnswer } from './operation.ts'
import { RequestKeyReused, SettingsRefused } from './settings/writer.ts'

export interface RawRequest {
  params: unknown
  query: unknown
  body: unknown
}

/**
 * Throws RequestRefused that names the wrong fields of path, query and body, as many as an answer names. Never repeats
 * a value: some are secret.
 */
export function checked(operation: Operation, raw: RawRequest): RawRequest {
  const faults: FieldFault[] = []
  let more = 0
  const add = (found: readonly FieldFault[]) => {
    const room = maxFields - faults.length
    faults.push(...found.slice(0, room))
    more += Math.max(0, found.length - room)
  }
  const parse = (schema: z.ZodType | undefined, value: unknown): unknown => {
    if (!schema) return undefined
    const { data, faults: found } = parsed(schema, value)
    add(found)
    return data
  }
  const params = parse(operation.params, raw.params)
  const query = parse(operation.query, operation.query && typed(operation.query, raw.query))
  if (!operation.query)
    for (const field of Object.keys((raw.query as object | null) ?? {}))
      add([{ field, message: 'there is no such parameter' }])
  const body = parse(operation.body, raw.body === undefined && canBeLeftOut(operation) ? {} : raw.body)
  if (faults.length > 0) {
    const message = faults.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))
    if (more > 0) message.push(`and ${more} more`)
    throw new RequestRefused('invalid_request', message.join('; '), faults)
  }
  return { params, query, body }
}

/** An empty body says all that has to be said. */
export const canBeLeftOut = ({ body }: Pick<Operation, 'body'>): boolean =>
  body?.safeParse({}).success === true

/** What a schema makes of a value, or what is wrong with it. */
export function parsed<T>(schema: z.ZodType<T>, value: unknown): { data?: T; faults: FieldFault[] } {
  const tooLong = lengthFaults(schema, value)
  if (tooLong.length > 0) return { faults: tooLong }
  const result = schema.safeParse(value)
  if (result.success) return { data: result.data, faults: [] }
  return { faults: result.error.issues.flatMap(faultsOf) }
}

function faultsOf(issue: z.core.$ZodIssue): FieldFault[] {
  const field = issue.path.join('.')
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => ({
      field: field === '' ? key : `${field}.${key}`,
      message: 'there is no such field',
    }))
  return [{ field, message: phraseOf(issue, field) }]
}

function phraseOf(issue: z.core.$ZodIssue, field: string): string {
  if (issue.code === 'invalid_type') {
    if (/received undefined$/.test(issue.message))
      return field === '' ? 'a JSON body is needed, with Content-Type: application/json' : 'is missing'
    return `must be ${articled(issue.expected)}`
  }
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`
  return issue.message
}

const articled = (type: string): string =>
  /^[aeio]/.test(type)
    ? `an ${type === 'int' ? 'integer' : type}`
    : `a ${type === 'record' ? 'JSON object' : type}`

/** Parameters come as texts; what the schema wants is not a text everywhere. */
function typed(schema: z.ZodObject, raw: unknown): unknown {
  const given = Object.entries((raw as Record<string, unknown> | null) ?? {})
  return Object.fromEntries(
    given.map(([name, value]) => {
      // Else `constructor` would be found, too.
      const known = Object.hasOwn(schema.shape, name) ? (schema.shape[name] as z.ZodType) : undefined
      return [name, asTyped(known, value)]
    }),
  )
}

function asTyped(schema: z.ZodType | undefined, value: unknown): unknown {
  switch (schema && innermost(schema)._zod.def.type) {
    case 'array':
      return typeof value === 'string' ? [value] : value
    case 'boolean':
      return value === 'true' ? true : value === 'false' ? false : value
    case 'number':
      return typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value
    default:
      return value
  }
}

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

/** What is behind `optional`, `nullable` and `default`. */
export function innermost(schema: z.ZodType): z.ZodType {
  const { innerType } = schema._zod.def as { innerType?: z.ZodType }
  return innerType ? innermost(innerType) : schema
}

/** Of a list `max()`, of a record `maxProperties` in its meta; undefined where none is set. */
export function maxLength(schema: z.ZodType): number | undefined {
  const { type, checks } = schema._zod.def as {
    type: string
    checks?: { _zod: { def: { check: string; maximum?: number } } }[]
  }
  if (type === 'record') return schema.meta()?.maxProperties as number | undefined
  return checks?.find(({ _zod }) => _zod.def.check === 'max_length')?._zod.def.maximum
}

interface Definition {
  type: string
  /** Of an object. */
  shape?: Record<string, z.ZodType>
  /** Of an array. */
  element?: z.ZodType
}

/**
 * Names the lists and records that are longer than their schema allows. To be asked before the schema itself looks at
 * what is in them: it names a fault for each element, and later rules compare each with each.
 */
export function lengthFaults(given: z.ZodType, value: unknown, path = ''): FieldFault[] {
  if (typeof value !== 'object' || value === null) return []
  const schema = innermost(given)
  const { type, shape, element } = schema._zod.def as Definition
  const isList = type === 'array' && Array.isArray(value)
  if (isList || type === 'record') {
    const length = isList ? value.length : Object.keys(value).length
    const max = maxLength(schema) ?? Infinity
    if (length > max) return [{ field: path, message: `has ${length} entries, at most ${max} are allowed` }]
  }
  if (isList) return value.flatMap((each, index) => lengthFaults(element!, each, join(path, String(index))))
  if (type !== 'object') return []
  return Object.entries(shape!).flatMap(([key, field]) =>
    Object.hasOwn(value, key)
      ? lengthFaults(field, (value as Record<string, unknown>)[key], join(path, key))
      : [],
  )
}

const join = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`)
