import type { z } from 'zod'
import type { FieldFault } from './errors.ts'

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
