// Checks what comes in by the schemas of its operation, and names everything that is wrong.
import type { z } from 'zod'
import { maxFields, RequestRefused, type FieldFault } from './errors.ts'
import { innermost, lengthFaults } from './lengths.ts'
import type { Operation } from './operation.ts'

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
  const body = parse(operation.body, raw.body)
  if (faults.length > 0) {
    const message = faults.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))
    if (more > 0) message.push(`and ${more} more`)
    throw new RequestRefused('invalid_request', message.join('; '), faults)
  }
  return { params, query, body }
}

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
