import { compileValue, reasonOf, type ValueExpression } from '../expression/call-expression.ts'
import { FaultCode, isFault, type Run } from '../expression/evaluation.ts'
import { jsonOf } from '../expression/json-text.ts'
import { marked, secretIn } from './secret-holes.ts'

/** Text with holes: `order ${call.properties.id}`. `$${` stands for `${`. */
export interface TextTemplate {
  /** Texts and holes as they stand. */
  readonly parts: readonly (string | ValueExpression)[]
}

/**
 * What stands in the holes of URLs and headers, by the text of the expression, and the holes of secrets in the body, without
 * their values. It travels with a delivery, as its body does.
 */
export type Filled = readonly { readonly hole: string; readonly value: string }[]

/** Undefined where the call has no such value, or the hole was not there when it was rendered. */
export const valueIn = (filled: Filled, hole: string): string | undefined =>
  filled.find((each) => each.hole === hole)?.value

/** What is known only when a request goes out. The body cannot have it: its bytes are the same at every attempt. */
export const attemptHole = 'delivery.attempt'
export const namesAttempt = /\bdelivery\s*\.\s*attempt\b/

/** Why no request can be made of a call, in one line without anything of its content. */
export class Unrenderable extends Error {}

export const hasHoles = (text: string): boolean => text.includes('${')

/** The template, or what is wrong with it. */
export function parseTemplate(
  text: string,
): { template: TextTemplate; fault: null } | { template: null; fault: string } {
  const parts: (string | ValueExpression)[] = []
  let literal = ''
  let at = 0
  while (at < text.length) {
    const next = text.indexOf('${', at)
    if (next < 0) break
    if (text[next - 1] === '$' && next > at) {
      literal += `${text.slice(at, next - 1)}\${`
      at = next + 2
      continue
    }
    const end = endOfHole(text, next + 2)
    if (end < 0) return { template: null, fault: 'a hole that begins with ${ is not closed with }' }
    const { expression, fault } = compileHole(text.slice(next + 2, end).trim())
    if (fault !== null) return { template: null, fault: `the hole ${text.slice(next, end + 1)}: ${fault}` }
    literal += text.slice(at, next)
    if (literal !== '') parts.push(literal)
    parts.push(expression)
    literal = ''
    at = end + 1
  }
  literal += text.slice(at)
  if (literal !== '' || parts.length === 0) parts.push(literal)
  return { template: { parts }, fault: null }
}

/** A hole that is a secret has no value yet: only what stands for it, until a request goes out. */
function compileHole(text: string): ReturnType<typeof compileValue> {
  const name = secretIn(text)
  if (name === null) {
    const compiled = compileValue(text)
    const { fault } = compiled
    return fault === null || !/: Unknown variable: secret$/.test(fault)
      ? compiled
      : { expression: null, fault: `${fault}; ${secretForm}` }
  }
  const evaluate = () => marked(name)
  return { expression: { text, field: null, evaluate, written: null }, fault: null }
}

const secretForm =
  'a secret is a hole by itself, ${secret.NAME}, with a name of 1-64 letters, digits and _, and part of no expression'

/** Where its `}` is, beside those of maps and within texts; -1 where there is none. */
function endOfHole(text: string, from: number): number {
  let depth = 0
  let quote: string | null = null
  for (let at = from; at < text.length; at++) {
    const character = text[at]!
    if (quote !== null) {
      if (character === '\\') at++
      else if (character === quote) quote = null
    } else if (character === '"' || character === "'") quote = character
    else if (character === '{') depth++
    else if (character === '}' && depth-- === 0) return at
  }
  return -1
}

export const holesOf = ({ parts }: TextTemplate): ValueExpression[] =>
  parts.filter((part) => typeof part !== 'string')

/** The hole that a template is and nothing else; null where it is more. */
export function onlyHoleOf<T extends { readonly text: string }>({
  parts,
}: {
  readonly parts: readonly (string | T)[]
}): T | null {
  const [only] = parts
  return parts.length === 1 && typeof only === 'object' ? only : null
}

/** What a hole's value is where the call has none. */
export const absent = Symbol('absent')

/** The hole's value. Throws Unrenderable where the expression fails. */
export function valueOf({ text, field, evaluate }: ValueExpression, run: Run): unknown {
  const value = evaluate(run)
  if (!isFault(value)) return value === null && field !== null ? absent : value
  if (value.reason === 'no_such_key' || value.reason === 'index_out_of_bounds') return absent
  throw new Unrenderable(`${text}: ${reasonOf(text, value)}`)
}

/** The value in a text: a text as it is, lists and maps as JSON, and nothing for null. */
export function textOf(hole: ValueExpression, value: unknown, run: Run): string {
  if (value === absent || value === null) return ''
  if (typeof value === 'string') return value
  const json = jsonText(hole, value, run)
  return value instanceof Date ? json.slice(1, -1) : json
}

/** The value as JSON. */
export function jsonText(hole: ValueExpression, value: unknown, run: Run): string {
  const { field } = hole
  const own = field === null ? null : run.call.mapText(field)
  if (own !== null) return own
  const json = jsonOf(value, run)
  if (json instanceof FaultCode)
    throw new Unrenderable(`${hole.text}: its value cannot be written as JSON (${json.code})`)
  return json
}

/** A template, as far as it takes to fill it: its holes by the text of their expressions. */
export interface Fillable {
  readonly parts: readonly (string | { readonly text: string })[]
}

/**
 * A header's value; null where the header is left out: it is one hole, and the call has no such value.
 *
 * @param attempt from 1
 */
export function filledHeader({ parts }: Fillable, filled: Filled, attempt: number): string | null {
  const valueOfHole = (hole: string) => (hole === attemptHole ? String(attempt) : valueIn(filled, hole))
  const only = onlyHoleOf({ parts })
  if (only !== null) return valueOfHole(only.text) ?? null
  return parts.map((part) => (typeof part === 'string' ? part : (valueOfHole(part.text) ?? ''))).join('')
}

/** The expressions in its holes. What is no template has none. */
export const templateHoles = (text: string): string[] =>
  holesOf(parseTemplate(text).template ?? { parts: [] }).map((hole) => hole.text)

/** What is wrong with the holes of a URL or of a header's value, one phrase a fault. */
export function holeFaults(text: string): string[] {
  const { template, fault } = parseTemplate(text)
  if (fault !== null) return [`has a fault: ${fault}`]
  return holesOf(template)
    .filter((hole) => namesAttempt.test(hole.text) && hole.text !== attemptHole)
    .map((hole) => `has the hole ${hole.text}: ${attemptHole} stands for itself only`)
}
