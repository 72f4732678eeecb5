// What a schema of a plan may hold, beside what JSON Schema says: so much that a sender cannot make a check take long, and
// nothing that is fetched from elsewhere.
import { RE2JS } from 're2js'

/** Keywords whose value is a schema, a list of schemas, or schemas by name. */
const ofOne = [
  'additionalItems',
  'additionalProperties',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'propertyNames',
  'then',
]
const ofList = ['allOf', 'anyOf', 'items', 'oneOf']
const ofNames = ['$defs', 'definitions', 'dependencies', 'patternProperties', 'properties']

/** Of a schema, each as often as references lead to it: with doubling references, a few lines would make millions. */
const maxSubschemas = 10_000
const maxDepth = 200

type Schema = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const own = (schema: Schema, key: string): unknown => (Object.hasOwn(schema, key) ? schema[key] : undefined)

/** The schemas right below, with their places. */
function* subschemas(schema: Schema): Iterable<[place: readonly string[], schema: unknown]> {
  for (const key of ofOne) {
    const value = own(schema, key)
    if (isObject(value) || typeof value === 'boolean') yield [[key], value]
  }
  for (const key of ofList) {
    const value = own(schema, key)
    if (Array.isArray(value)) for (const [index, each] of value.entries()) yield [[key, String(index)], each]
  }
  for (const key of ofNames) {
    const value = own(schema, key)
    if (!isObject(value)) continue
    // `dependencies` may hold lists of names, too.
    for (const [name, each] of Object.entries(value)) if (!Array.isArray(each)) yield [[key, name], each]
  }
}

const textOf = (place: readonly string[]): string => (place.length === 0 ? 'it' : place.join('.'))

/** Keywords that name a schema for others, or say how others are found. */
const naming = [
  '$id',
  'id',
  '$anchor',
  '$dynamicRef',
  '$dynamicAnchor',
  '$recursiveRef',
  '$recursiveAnchor',
  '$async',
]

/**
 * What is wrong with the schema, each with its place; as many as are worth reading. The rest of JSON Schema's rules is
 * not checked here.
 *
 * @param isKeyword whether there is such a keyword
 * @param formats that there are
 */
export function schemaFaults(
  schema: unknown,
  isKeyword: (name: string) => boolean,
  formats: readonly string[],
): string[] {
  const faults: string[] = []
  const visit = (value: unknown, place: readonly string[]): void => {
    if (!isObject(value) || faults.length >= 20) return
    if (place.length > maxDepth) return void faults.push('it is nested too deeply')
    for (const key of Object.keys(value)) {
      if (naming.includes(key)) faults.push(`${textOf(place)}: ${key} is not taken`)
      else if (!isKeyword(key)) faults.push(`${textOf(place)}: there is no keyword ${JSON.stringify(key)}`)
    }
    faults.push(...valueFaults(value, formats).map((fault) => `${textOf(place)}: ${fault}`))
    for (const [below, each] of subschemas(value)) visit(each, [...place, ...below])
  }
  visit(schema, [])
  if (faults.length === 0) faults.push(...referenceFaults(schema))
  return faults
}

function valueFaults(schema: Schema, formats: readonly string[]): string[] {
  const faults: string[] = []
  const { $schema, $ref, format, pattern, patternProperties } = schema
  if ($schema !== undefined && !/^https?:\/\/json-schema\.org\/draft-07\/schema#?$/.test(String($schema)))
    faults.push(`$schema is ${JSON.stringify($schema)}; schemas are read as draft-07`)
  if ($ref !== undefined && !(typeof $ref === 'string' && /^#(\/|$)/.test($ref)))
    faults.push('$ref must lead to a place in the same schema, such as #/$defs/price')
  if (format !== undefined && !formats.includes(format as string))
    faults.push(`there is no format ${JSON.stringify(format)}; there are ${formats.join(', ')}`)
  const patterns = [pattern, ...(isObject(patternProperties) ? Object.keys(patternProperties) : [])]
  for (const each of patterns) {
    const refusal = typeof each === 'string' ? patternRefusal(each) : null
    if (refusal !== null) faults.push(refusal)
  }
  return faults
}

function patternRefusal(pattern: string): string | null {
  try {
    linearRegExp(pattern)
    return null
  } catch {
    return `the pattern ${JSON.stringify(pattern)} cannot be used: patterns are those of RE2, without look-around and back-references`
  }
}

/** A regular expression whose time grows with the text's length alone, whatever the pattern. Throws for what RE2 does not take. */
export function linearRegExp(pattern: string): { test(text: string): boolean; toString(): string } {
  const compiled = isPlain(pattern) ? new RegExp(pattern, 'u') : RE2JS.compile(RE2JS.translateRegExp(pattern))
  // Ajv takes patterns with the same text for the same one.
  return { test: (text) => compiled.test(text), toString: () => pattern }
}

/** A character, an escape or a class that both engines take for the same. */
const atom = '(?:[A-Za-z0-9_ @:,/#%&~=<>!;\'"-]|\\\\[dw.\\-]|\\[\\^?(?:[A-Za-z0-9_ @:,/.-]|\\\\[dw.])+\\])'
const plain = new RegExp(
  `^\\^(?:${atom}(?:\\{\\d{1,2}\\})?)*(?:${atom}[+*?])?(?:${atom}(?:\\{\\d{1,2}\\})?)*\\$?$`,
)

/**
 * Whether V8's own engine, which is several times as fast, needs no more than one step back for each character: the
 * pattern stands at the beginning, and only one part of it can be of different lengths. Most patterns are like that.
 */
export function isPlain(pattern: string): boolean {
  if (pattern.length > 200 || !plain.test(pattern)) return false
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}

/** References that lead nowhere or round in a circle, and too many of them. */
function referenceFaults(root: unknown): string[] {
  const sizes = new Map<unknown, number>()
  const open = new Set<unknown>()
  const faults: string[] = []
  const sizeOf = (value: unknown, place: readonly string[]): number => {
    if (!isObject(value)) return 1
    const known = sizes.get(value)
    if (known !== undefined) return known
    if (open.has(value)) {
      faults.push(`${textOf(place)}: $ref leads round in a circle`)
      return 1
    }
    open.add(value)
    let size = 1
    for (const [below, each] of subschemas(value)) size += sizeOf(each, [...place, ...below])
    const reference = own(value, '$ref')
    if (typeof reference === 'string') {
      const target = targetOf(root, reference)
      if (target === undefined)
        faults.push(`${textOf(place)}: $ref ${JSON.stringify(reference)} leads nowhere`)
      else size += sizeOf(target, place)
    }
    open.delete(value)
    sizes.set(value, Math.min(size, Number.MAX_SAFE_INTEGER))
    return size
  }
  const size = sizeOf(root, [])
  if (faults.length === 0 && size > maxSubschemas)
    faults.push(`it comes to ${size} schemas with its references, at most ${maxSubschemas} are allowed`)
  return faults.slice(0, 20)
}

function targetOf(root: unknown, reference: string): unknown {
  let at = root
  for (const step of reference.slice(1).split('/').slice(1)) {
    let name: string
    try {
      name = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    } catch {
      return undefined
    }
    if (Array.isArray(at)) at = at[Number(name)] as unknown
    else if (isObject(at)) at = own(at, name)
    else return undefined
  }
  return at
}

/** Every name of a property that the schema says: only these are shown, for other names are a sender's. */
export function namesIn(schema: unknown): ReadonlySet<string> {
  const names = new Set<string>()
  const seen = new Set<unknown>()
  const visit = (value: unknown): void => {
    if (!isObject(value) || seen.has(value)) return
    seen.add(value)
    for (const key of ['properties', 'dependencies'])
      for (const name of Object.keys((own(value, key) as object | undefined) ?? {})) names.add(name)
    const required = own(value, 'required')
    if (Array.isArray(required)) for (const name of required) names.add(String(name))
    for (const list of Object.values((own(value, 'dependencies') as object | undefined) ?? {}))
      if (Array.isArray(list)) for (const name of list) names.add(String(name))
    for (const [, each] of subschemas(value)) visit(each)
  }
  visit(schema)
  return names
}
