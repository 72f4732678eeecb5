import type { AnalyticsCall } from '../call/analytics-call.ts'
import { parseJson } from '../json/parse-json.ts'
import { parseTimestamp } from '../timestamp.ts'

/** What a value is. The last four are strings of a form. */
export const fieldKinds = [
  'object',
  'array',
  'null',
  'boolean',
  'integer',
  'number',
  'string',
  'date-time',
  'date',
  'email',
  'uuid',
] as const
export type FieldKind = (typeof fieldKinds)[number]

/** A key; 0 for the elements of an array; null for any key that is data itself, such as an address. */
export type PathStep = string | 0 | null

/** A place in a call, and what is there. */
export interface ShapeField {
  /** Its steps as JSON, so that no key can be taken for another path. */
  path: string
  kinds: readonly FieldKind[]
}

/** Which fields a call has, of which kinds. It holds no value. */
export interface CallShape {
  fields: readonly ShapeField[]
  /** Fields beyond a bound: too many, too deep, or with a path too long. */
  omitted: number
}

export const shapeMaps = ['properties', 'traits', 'context'] as const
export type ShapeMap = (typeof shapeMaps)[number]

/** Fields of an event that are kept. */
export const maxFields = 300
const maxDepth = 10
const maxKeyLength = 100
/** Of a path as it is kept. Write keys are public: without a bound, a sender could fill a console's disk. */
const maxPathLength = 200

/** What known shapes may take, about: nodes, and 50 characters of their keys. */
const maxWeight = 50_000

/**
 * What a value is: a kind of scalar, or the members or elements of a container so far, one after another. The same
 * content in the same order is the same node, so that most calls of an event lead to one of a few.
 */
class Content {
  readonly kind: FieldKind
  /** Null of scalars and of a container without content. */
  readonly last: { before: Content; key: string; value: Content } | null
  /** Its content is too deep to be looked at. */
  readonly isCut: boolean
  /** Of a call, once it was asked for. */
  shape: CallShape | null = null
  readonly #next = new Map<string, Map<Content, Content>>()

  constructor(kind: FieldKind, last: Content['last'] = null, isCut = false) {
    this.kind = kind
    this.last = last
    this.isCut = isCut
  }

  /** With one more member, or with an element, whose key is empty. */
  with(key: string, value: Content, onNew: (key: string) => void): Content {
    let byValue = this.#next.get(key)
    if (!byValue) this.#next.set(key, (byValue = new Map()))
    let next = byValue.get(value)
    if (!next) {
      byValue.set(value, (next = new Content(this.kind, { before: this, key, value })))
      onNew(key)
    }
    return next
  }

  /** In their order. Of one call there can be a hundred thousand: neither the stack nor the time may grow with each. */
  entries(): { key: string; value: Content }[] {
    const entries = []
    for (let at = this.last; at !== null; at = at.before.last) entries.push(at)
    return entries.reverse()
  }
}

const scalars = Object.fromEntries(fieldKinds.map((kind) => [kind, new Content(kind)])) as Record<
  FieldKind,
  Content
>
const [cutObject, cutArray] = [new Content('object', null, true), new Content('array', null, true)]

/** The shapes of calls. Calls with the same fields, in the same order, get the same object. */
export class CallShapes {
  #object = new Content('object')
  #array = new Content('array')
  #weight = 0
  readonly #count = (key: string): void => void (this.#weight += 1 + key.length / 50)

  /** A map that is no JSON object, which another producer may have written, is left out. */
  of(call: Pick<AnalyticsCall, ShapeMap>): CallShape {
    if (this.#weight > maxWeight) {
      this.#object = new Content('object')
      this.#array = new Content('array')
      this.#weight = 0
    }
    let content = this.#object
    for (const map of shapeMaps) {
      const value = objectOf(call[map])
      if (value !== null) content = content.with(map, this.#contentOf(value, 0), this.#count)
    }
    return (content.shape ??= shapeOf(content))
  }

  #contentOf(value: unknown, depth: number): Content {
    switch (typeof value) {
      case 'string':
        return scalars[stringKind(value)]
      case 'number':
        return Number.isInteger(value) ? scalars.integer : scalars.number
      case 'boolean':
        return scalars.boolean
    }
    if (value === null) return scalars.null
    return Array.isArray(value) ? this.#arrayOf(value, depth) : this.#objectOf(value as object, depth)
  }

  #objectOf(value: object, depth: number): Content {
    if (depth === maxDepth) return cutObject
    let content = this.#object
    // Own keys only: it was made of JSON.
    for (const key in value) {
      const member = (value as Record<string, unknown>)[key]
      content = content.with(key, this.#contentOf(member, depth + 1), this.#count)
    }
    return content
  }

  #arrayOf(value: readonly unknown[], depth: number): Content {
    if (depth === maxDepth) return cutArray
    let content = this.#array
    const seen = new Set<Content>()
    for (const element of value) {
      const each = this.#contentOf(element, depth + 1)
      if (seen.has(each)) continue
      seen.add(each)
      content = content.with('', each, this.#count)
    }
    return content
  }
}

function objectOf(text: string | null): object | null {
  if (text === null) return null
  try {
    const value = parseJson(text)
    return typeof value === 'object' && !Array.isArray(value) ? value : null
  } catch (error) {
    // No JSON, or nested thousands deep.
    if (error instanceof SyntaxError || error instanceof RangeError) return null
    throw error
  }
}

const dateForm = /^\d{4}-\d\d-\d\d$/
const dateTimeForm = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/
const uuidForm = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i
const emailForm = /^[\w%+-]+(\.[\w%+-]+)*@[a-z\d]([a-z\d-]*[a-z\d])?(\.[a-z\d]([a-z\d-]*[a-z\d])?)+$/i
const maxEmailLength = 254
const dash = 0x2d

function stringKind(text: string): FieldKind {
  const { length } = text
  if (length < 5 || length > maxEmailLength) return 'string'
  if (text.charCodeAt(4) === dash && length <= 35) {
    if (dateForm.test(text)) return parseTimestamp(text) === null ? 'string' : 'date'
    if (dateTimeForm.test(text)) return parseTimestamp(text) === null ? 'string' : 'date-time'
  }
  if (length === 36 && text.charCodeAt(8) === dash && uuidForm.test(text)) return 'uuid'
  return text.includes('@') && emailForm.test(text) ? 'email' : 'string'
}

function shapeOf(call: Content): CallShape {
  const found = new Map<string, Set<FieldKind>>()
  let omitted = 0
  const visit = (steps: readonly PathStep[], content: Content): void => {
    const path = JSON.stringify(steps)
    const kinds = found.get(path)
    if (kinds) kinds.add(content.kind)
    else if (found.size < maxFields && path.length <= maxPathLength) found.set(path, new Set([content.kind]))
    else return void omitted++
    if (content.isCut) omitted++
    for (const { key, value } of content.entries())
      visit([...steps, content.kind === 'array' ? 0 : isData(key) ? null : key], value)
  }
  for (const { key, value } of call.entries()) visit([key], value)
  return { fields: [...found].map(([path, kinds]) => ({ path, kinds: [...kinds] })), omitted }
}

/** Numbers, addresses and ids: an object that has them as keys holds one member for each user or thing. */
const dataForm = /^\d+$|@|^(?=.*\d)[\da-f-]{16,}$/i

const isData = (key: string): boolean => key.length > maxKeyLength || dataForm.test(key)
