import { hasEscapedKey } from '../../core/json/parse-json.ts'
import { stringOf } from '../../core/json/json-members.ts'
import { numberEnd, stringEnd, valueEnd } from '../../core/json/json-object.ts'
import type { JsonSchema } from '../../core/tracking-plan/tracking-plan.ts'
import { formats } from './formats.ts'
import { linearRegExp } from './schema-rules.ts'

/**
 * What one schema says of a value. The same fields for every schema: one piece of code reads them all, which V8 has
 * compiled long before each of a plan's hundred schemas was used often enough to be worth it.
 */
export interface Rule {
  /** Of `kindBits`. */
  readonly kinds: number
  /** The JSON of the only values that fit; null: any. */
  readonly among: ReadonlySet<string> | null
  readonly text: TextRule | null
  readonly number: NumberRule | null
  readonly list: ListRule | null
  readonly object: ObjectRule | null
}

interface TextRule {
  /** Of code points. */
  readonly minLength: number
  readonly maxLength: number
  readonly pattern: { test(text: string): boolean } | null
  readonly format: ((text: string) => boolean) | null
}

interface NumberRule {
  readonly min: number
  readonly max: number
  readonly above: number
  readonly below: number
}

interface ListRule {
  readonly minItems: number
  readonly maxItems: number
  readonly isUnique: boolean
  /** Null: no item fits. */
  readonly items: Rule | null
}

interface ObjectRule {
  /** By the key as JSON. */
  readonly members: ReadonlyMap<string, Member>
  /** Of members without a name here; null: none fits. */
  readonly others: Rule | null
  /** A bit for each member that is required. */
  readonly required: number
  /** What stood first the last time: senders write their keys in one order. */
  first: Member | null
}

interface Member {
  /** Its key as JSON, and what stands behind it. */
  readonly start: string
  readonly rule: Rule | null
  /** Its bit of `required`; 0: it may be absent. */
  readonly bit: number
  /** What followed it the last time. */
  next: Member | null
}

const kindBits = { null: 1, boolean: 2, string: 4, array: 8, object: 16, number: 32, integer: 64 } as const
const anyKind = 127
const maxRequired = 31

const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d]
const [quote, comma, colon, minus, letterF, letterN, letterT] = [0x22, 0x2c, 0x3a, 0x2d, 0x66, 0x6e, 0x74]

const anything: Rule = { kinds: anyKind, among: null, text: null, number: null, list: null, object: null }

/** Null for a schema that says more than is read here: values of it are always parsed. Throws where a pattern is none. */
export function fittingRule(schema: JsonSchema): Rule | null {
  try {
    return ruleOf(schema)
  } catch (error) {
    if (error instanceof MoreThanRead) return null
    throw error
  }
}

/**
 * Whether a JSON text surely fits, by one scan of it and without any object made of it. False: it must be parsed and
 * checked, because it does not fit, or is written as `JSON.stringify` would not write it.
 */
export const fitsSurely = (rule: Rule, text: string): boolean =>
  // What V8 could read wrongly is read elsewhere, and may be nested too deep there.
  fittingEnd(rule, text, 0) === text.length && !hasEscapedKey(text)

class MoreThanRead extends Error {}

type Schema = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Keywords that say nothing of a value. */
const annotations = ['title', 'description', 'default', 'examples', '$comment', 'readOnly', 'writeOnly']
const ofTexts = ['minLength', 'maxLength', 'pattern', 'format']
const ofNumbers = ['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum']
const ofLists = ['items', 'minItems', 'maxItems', 'uniqueItems']
const ofObjects = ['properties', 'required', 'additionalProperties']
const keywords = new Set([
  ...annotations,
  ...['$schema', 'type', 'enum', 'const'],
  ...ofTexts,
  ...ofNumbers,
  ...ofLists,
  ...ofObjects,
])

/** Null: nothing fits. */
function ruleOf(schema: unknown): Rule | null {
  if (schema === true) return anything
  if (schema === false) return null
  if (!isObject(schema)) throw new MoreThanRead()
  for (const key of Object.keys(schema)) if (!keywords.has(key)) throw new MoreThanRead()
  const has = (names: readonly string[]) => names.some((name) => Object.hasOwn(schema, name))
  const json = has(ofObjects) ? null : JSON.stringify(schema)
  const shared = json === null ? undefined : sharedRules.get(json)
  if (shared) return shared
  const rule: Rule = {
    kinds: kindsOf(schema),
    among: amongOf(schema),
    text: has(ofTexts) ? textRuleOf(schema) : null,
    number: has(ofNumbers) ? numberRuleOf(schema) : null,
    list: has(ofLists) ? listRuleOf(schema) : null,
    object: has(ofObjects) ? objectRuleOf(schema) : null,
  }
  if (json !== null && json.length <= maxSharedLength) share(json, rule)
  return rule
}

/**
 * By their schema's JSON: an order's number is the same in most events of a plan. Read for one call, they are still in the
 * processor's cache for the next, whichever event that has.
 */
const sharedRules = new Map<string, Rule>()
const maxSharedRules = 5_000
const maxSharedLength = 1_000

function share(json: string, rule: Rule): void {
  // Of plans that have long been changed.
  if (sharedRules.size === maxSharedRules) sharedRules.clear()
  sharedRules.set(json, rule)
}

function kindsOf({ type, $schema }: Schema): number {
  if ($schema !== undefined && !/^http:\/\/json-schema\.org\/draft-07\/schema#?$/.test(String($schema)))
    throw new MoreThanRead()
  if (type === undefined) return anyKind
  let kinds = 0
  for (const name of Array.isArray(type) ? (type as unknown[]) : [type]) {
    if (typeof name !== 'string' || !Object.hasOwn(kindBits, name)) throw new MoreThanRead()
    kinds |= kindBits[name as keyof typeof kindBits]
  }
  return kinds
}

function amongOf(schema: Schema): ReadonlySet<string> | null {
  const hasEnum = Object.hasOwn(schema, 'enum')
  const hasConst = Object.hasOwn(schema, 'const')
  if (!hasEnum && !hasConst) return null
  if (hasEnum && (hasConst || !Array.isArray(schema.enum))) throw new MoreThanRead()
  const values = hasConst ? [schema.const] : (schema.enum as unknown[])
  return new Set(values.map((value) => JSON.stringify(value)))
}

function numberIn(schema: Schema, keyword: string, ifAbsent: number): number {
  const value = Object.hasOwn(schema, keyword) ? schema[keyword] : ifAbsent
  if (typeof value !== 'number' || Number.isNaN(value)) throw new MoreThanRead()
  return value
}

function textRuleOf(schema: Schema): TextRule {
  const { pattern, format } = schema
  if (pattern !== undefined && typeof pattern !== 'string') throw new MoreThanRead()
  if (format !== undefined && (typeof format !== 'string' || !Object.hasOwn(formats, format)))
    throw new MoreThanRead()
  return {
    minLength: numberIn(schema, 'minLength', 0),
    maxLength: numberIn(schema, 'maxLength', Infinity),
    pattern: pattern === undefined ? null : linearRegExp(pattern),
    format: format === undefined ? null : formats[format]!,
  }
}

const numberRuleOf = (schema: Schema): NumberRule => ({
  min: numberIn(schema, 'minimum', -Infinity),
  max: numberIn(schema, 'maximum', Infinity),
  above: numberIn(schema, 'exclusiveMinimum', -Infinity),
  below: numberIn(schema, 'exclusiveMaximum', Infinity),
})

function listRuleOf(schema: Schema): ListRule {
  const { items = true, uniqueItems = false } = schema
  if (typeof uniqueItems !== 'boolean') throw new MoreThanRead()
  return {
    minItems: numberIn(schema, 'minItems', 0),
    maxItems: numberIn(schema, 'maxItems', Infinity),
    isUnique: uniqueItems,
    items: ruleOf(items),
  }
}

function objectRuleOf({
  properties = {},
  required: names = [],
  additionalProperties = true,
}: Schema): ObjectRule {
  if (!isObject(properties) || !Array.isArray(names)) throw new MoreThanRead()
  const others = ruleOf(additionalProperties)
  const wanted = new Set(names as unknown[])
  if (wanted.size > maxRequired) throw new MoreThanRead()
  const members = new Map<string, Member>()
  let required = 0
  let nextBit = 1
  for (const name of new Set([...Object.keys(properties), ...wanted])) {
    // What is not its own JSON can be written in several ways.
    if (typeof name !== 'string' || name === '__proto__' || JSON.stringify(name) !== `"${name}"`)
      throw new MoreThanRead()
    const rule = Object.hasOwn(properties, name) ? ruleOf(properties[name]) : others
    const bit = wanted.has(name) ? nextBit : 0
    members.set(`"${name}"`, { start: `"${name}":`, rule, bit, next: null })
    if (bit === 0) continue
    required |= bit
    nextBit <<= 1
  }
  return { members, others, required, first: null }
}

// Each of these gives the position behind a value that fits, or -1.

function fittingEnd(rule: Rule, text: string, at: number): number {
  if (rule === anything) return valueEnd(text, at)
  const end = endByKind(rule, text, at)
  return end < 0 || rule.among === null || rule.among.has(text.slice(at, end)) ? end : -1
}

function endByKind(rule: Rule, text: string, at: number): number {
  const { kinds } = rule
  const first = text.charCodeAt(at)
  switch (first) {
    case quote: {
      const end = (kinds & kindBits.string) === 0 ? -1 : stringEnd(text, at)
      return end < 0 || rule.text === null || isText(rule.text, stringOf(text.slice(at, end))) ? end : -1
    }
    case openBrace:
      // It is not looked through as a whole at each level.
      return (kinds & kindBits.object) === 0 || rule.among !== null ? -1 : objectEnd(rule.object, text, at)
    case openBracket:
      return (kinds & kindBits.array) === 0 || rule.among !== null ? -1 : listEnd(rule.list, text, at)
    case letterN:
      return (kinds & kindBits.null) === 0 ? -1 : valueEnd(text, at)
    case letterT:
    case letterF:
      return (kinds & kindBits.boolean) === 0 ? -1 : valueEnd(text, at)
    default: {
      if (first !== minus && !(first >= 0x30 && first <= 0x39)) return -1
      const end = numberEnd(text, at)
      if (end < 0 || (kinds === anyKind && rule.number === null)) return end
      return isNumber(rule, Number(text.slice(at, end))) ? end : -1
    }
  }
}

function isText({ minLength, maxLength, pattern, format }: TextRule, value: string): boolean {
  if (minLength > 0 || maxLength !== Infinity) {
    const length = codePoints(value)
    if (length < minLength || length > maxLength) return false
  }
  return (pattern === null || pattern.test(value)) && (format === null || format(value))
}

function codePoints(text: string): number {
  let count = text.length
  for (let at = 0; at < text.length - 1; at++)
    if ((text.charCodeAt(at) & 0xfc00) === 0xd800 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count--
  return count
}

function isNumber({ kinds, number }: Rule, value: number): boolean {
  if (!Number.isFinite(value)) return false
  if ((kinds & kindBits.number) === 0 && ((kinds & kindBits.integer) === 0 || value % 1 !== 0)) return false
  if (number === null) return true
  return value >= number.min && value <= number.max && value > number.above && value < number.below
}

function listEnd(rule: ListRule | null, text: string, at: number): number {
  if (rule === null) return valueEnd(text, at)
  const { items, minItems, maxItems, isUnique } = rule
  if (text.charCodeAt(at + 1) === closeBracket) return minItems > 0 ? -1 : at + 2
  if (items === null) return -1
  for (let count = 1; ; count++) {
    at = fittingEnd(items, text, at + 1)
    if (at < 0 || count > maxItems) return -1
    const next = text.charCodeAt(at)
    if (next === closeBracket) return count < minItems || (isUnique && count > 1) ? -1 : at + 1
    if (next !== comma) return -1
  }
}

function objectEnd(object: ObjectRule | null, text: string, at: number): number {
  if (object === null) return valueEnd(text, at)
  const { members, others, required } = object
  if (text.charCodeAt(at + 1) === closeBrace) return required === 0 ? at + 2 : -1
  let missing = required
  let before: Member | null = null
  do {
    const key = at + 1
    let member: Member | null = before === null ? object.first : before.next
    if (member !== null && text.slice(key, key + member.start.length) === member.start)
      at = key + member.start.length
    else {
      if (text.charCodeAt(key) !== quote) return -1
      const end = stringEnd(text, key)
      if (end < 0 || text.charCodeAt(end) !== colon) return -1
      at = end + 1
      member = members.get(text.slice(key, end)) ?? null
      if (member !== null) {
        if (before === null) object.first = member
        else before.next = member
      }
    }
    const rule = member === null ? others : member.rule
    if (rule === null) return -1
    at = fittingEnd(rule, text, at)
    if (at < 0) return -1
    if (member !== null) {
      // A key that comes twice fits each time, and so the last time.
      missing &= ~member.bit
      before = member
    }
  } while (text.charCodeAt(at) === comma)
  return missing === 0 && text.charCodeAt(at) === closeBrace ? at + 1 : -1
}
