import type { z } from 'zod'
import { maxLength } from './check.ts'
import type { Operation } from './operation.ts'

/** A field of an operation's query or body, for flags and forms. */
export interface Field {
  place: 'query' | 'body'
  name: string
  type: 'text' | 'number' | 'boolean' | 'list' | 'map'
  /** What it, each item of a list or each key of a map can be; null for any text. */
  choices: readonly string[] | null
  isRequired: boolean
  isNullable: boolean
  /** A list whose items can hold no comma: a flag takes several between commas. */
  isOfNames: boolean
  /** A text of more than a line. */
  isLong: boolean
  /** What it is unless it is given; undefined where there is no such value. */
  fallback: unknown
  /** For people, as in the API's document. */
  text: string
}

/** Characters of which more lines are written. */
const longText = 500

/** Those that a flag can be made of. An object is none. */
export function fieldsOf({ query, body }: Pick<Operation, 'query' | 'body'>): Field[] {
  return [...shapeOf(query, 'query'), ...shapeOf(body, 'body')]
}

interface Definition {
  type: string
  innerType?: z.ZodType
  defaultValue?: unknown
  shape?: Record<string, z.ZodType>
  element?: z.ZodType
  keyType?: z.ZodType
  entries?: Record<string, string>
  values?: unknown[]
}

const definitionOf = (schema: z.ZodType) => schema._zod.def as unknown as Definition

function shapeOf(schema: z.ZodType | undefined, place: Field['place']): Field[] {
  const shape = schema && definitionOf(schema).shape
  return Object.entries(shape ?? {}).flatMap(([name, each]) => fieldOf(place, name, each) ?? [])
}

function fieldOf(place: Field['place'], name: string, schema: z.ZodType): Field | null {
  const field = {
    place,
    name,
    isRequired: true,
    isNullable: false,
    isOfNames: false,
    isLong: false,
    fallback: undefined as unknown,
    text: '',
  }
  let inner = schema
  for (;;) {
    field.text ||= inner.description ?? ''
    const { type, innerType, defaultValue } = definitionOf(inner)
    if (!innerType) break
    if (type === 'optional' || type === 'default') field.isRequired = false
    if (type === 'nullable') field.isNullable = true
    if (type === 'default') field.fallback = defaultValue
    inner = innerType
  }
  const { type, element, keyType } = definitionOf(inner)
  if (type === 'array') {
    const choices = choicesOf(element!)
    const isOfNames = !element!.safeParse('a,b').success
    return choices === undefined ? null : { ...field, type: 'list', choices, isOfNames }
  }
  if (type === 'number' || type === 'boolean') return { ...field, type, choices: null }
  if (type === 'record') {
    const choices = choicesOf(keyType!)
    return choices ? { ...field, type: 'map', choices } : null
  }
  const choices = choicesOf(inner)
  const isLong = (maxLength(inner) ?? 0) > longText
  return choices === undefined ? null : { ...field, isLong, type: 'text', choices }
}

/** Undefined where it is no text. */
function choicesOf(schema: z.ZodType): readonly string[] | null | undefined {
  const { type, entries, values } = definitionOf(schema)
  if (type === 'string') return null
  if (type === 'enum') return Object.values(entries!)
  if (type === 'literal' && values!.every((value) => typeof value === 'string')) return values as string[]
  return undefined
}
