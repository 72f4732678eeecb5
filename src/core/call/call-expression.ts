// The one file of core that imports a library: CEL is a pure function of an expression and a call.
import { Environment, EvaluationError, ParseError, type ASTNode } from '@marcbachmann/cel-js'
import type { AnalyticsCall } from './analytics-call.ts'
import { isExact } from '../json/json-number.ts'
import { parseJson } from '../json/parse-json.ts'

export const maxExpressionLength = 2_000
const maxNodes = 500
const maxDepth = 50
/** Maps with a longer text are not searched element by element: a call from Kafka may have a megabyte. */
const maxSearchedLength = 64 * 1024

/** What an expression can read of a call, by the names and types that it has there. */
const fields = {
  type: 'string',
  messageId: 'string',
  userId: 'dyn',
  anonymousId: 'dyn',
  previousId: 'dyn',
  groupId: 'dyn',
  event: 'dyn',
  name: 'dyn',
  category: 'dyn',
  timestamp: 'google.protobuf.Timestamp',
  properties: 'map',
  traits: 'map',
  context: 'map',
} as const
export type ReadableCall = Pick<AnalyticsCall, keyof typeof fields>
const mapFields = ['properties', 'traits', 'context'] as const
type MapField = (typeof mapFields)[number]

/** Go through a list; one within the condition of another would take the square of its length. */
const searches = ['all', 'exists', 'exists_one', 'filter'] as const
const timeParts =
  'getFullYear getMonth getDate getDayOfMonth getDayOfWeek getHours getMinutes getSeconds getMilliseconds'.split(
    ' ',
  )
/**
 * All that takes time in proportion to what it looks at, and whose result is no larger. So there is no `matches`, whose
 * regular expressions may take for ever here, and no `map` or `bind`, which can double a value again and again.
 */
const functions = ['has', 'size', 'int', 'double', 'string', 'bool', 'timestamp', 'duration']
const methods = [
  ...['size', 'startsWith', 'endsWith', 'contains', 'lowerAscii', 'upperAscii', 'trim'],
  ...timeParts,
  ...searches,
]

/** A condition on calls, in CEL. */
export interface CallExpression {
  /** Whether it holds; why that cannot be said, for instance `no_such_key at line 1, column 6`. */
  evaluate(call: CallValues): boolean | EvaluationFault
}

/** In one line, without anything of the call's content. */
export interface EvaluationFault {
  reason: string
}

/** The expression, or what is wrong with its text and where. */
export function compileExpression(
  text: string,
): { expression: CallExpression; fault: null } | { expression: null; fault: string } {
  const refused = (fault: string) => ({ expression: null, fault })
  if (text.length > maxExpressionLength)
    return refused(`it has ${text.length} characters, at most ${maxExpressionLength} are allowed`)
  try {
    const parsed = environment.parse(text)
    const search = { found: false }
    const fault = boundFault(parsed.ast, search, false)
    if (fault !== null) return refused(`${placeOf(text, fault.node.start)}: ${fault.phrase}`)
    const { type, error } = parsed.check()
    if (error) return refused(`${placeOf(text, error.range?.start)}: ${error.summary}`)
    if (type !== 'bool' && type !== 'dyn')
      return refused(`it gives a value of type ${type}, not true or false`)
    const evaluate = parsed as unknown as (variables: { call: CallView }) => unknown
    return { expression: new CompiledExpression(text, evaluate, search.found), fault: null }
  } catch (error) {
    if (error instanceof ParseError) return refused(`${placeOf(text, error.range?.start)}: ${error.summary}`)
    // Whatever else it throws for this text it would throw for it again.
    return refused(error instanceof Error ? error.message : String(error))
  }
}

class CompiledExpression implements CallExpression {
  readonly #text: string
  readonly #evaluate: (variables: { call: CallView }) => unknown
  readonly #searches: boolean

  constructor(text: string, evaluate: (variables: { call: CallView }) => unknown, searches: boolean) {
    this.#text = text
    this.#evaluate = evaluate
    this.#searches = searches
  }

  evaluate(values: CallValues): boolean | EvaluationFault {
    const call = this.#searches ? values.short : values.any
    try {
      const value = this.#evaluate({ call })
      return typeof value === 'boolean' ? value : { reason: 'its value is neither true nor false' }
    } catch (error) {
      if (!(error instanceof EvaluationError))
        return { reason: error instanceof TooLong ? error.message : 'a value cannot be read' }
      return { reason: `${error.code} at ${placeOf(this.#text, error.range?.start)}` }
    }
  }
}

class TooLong extends Error {}

/** The values of one call, parsed when they are first asked for and once for all expressions. */
export class CallValues {
  readonly any: CallView
  /** For expressions that go through lists: it has no map that is too long for that. */
  readonly short: CallView

  constructor(call: ReadableCall) {
    const parsed = new Map<MapField, unknown>()
    this.any = new CallView(call, parsed, Infinity)
    this.short = new CallView(call, parsed, maxSearchedLength)
  }
}

/** An absent map is an empty one, as in the body; any other absent field is null, an empty id too. */
class CallView {
  readonly #call: ReadableCall
  readonly #parsed: Map<MapField, unknown>
  readonly #maxLength: number

  constructor(call: ReadableCall, parsed: Map<MapField, unknown>, maxLength: number) {
    this.#call = call
    this.#parsed = parsed
    this.#maxLength = maxLength
  }

  /** The value of one of `fields`. */
  read(field: keyof typeof fields): unknown {
    if (field === 'timestamp') return new Date(this.#call.timestamp)
    if (field === 'userId' || field === 'anonymousId') return this.#call[field] || null
    return isMapField(field) ? this.#map(field) : this.#call[field]
  }

  #map(field: MapField): unknown {
    const text = this.#call[field]
    if (text === null) return {}
    if (text.length > this.#maxLength) throw new TooLong(`${field} is too long to be searched`)
    let value = this.#parsed.get(field)
    if (value === undefined) this.#parsed.set(field, (value = valueOf(text)))
    return value
  }
}

for (const field of Object.keys(fields) as (keyof typeof fields)[]) {
  Object.defineProperty(CallView.prototype, field, {
    get(this: CallView) {
      return this.read(field)
    },
  })
}

const isMapField = (field: string): field is MapField => (mapFields as readonly string[]).includes(field)

const environment = new Environment({ limits: { maxAstNodes: maxNodes, maxDepth } })
  .registerType('Call', { ctor: CallView, fields })
  .registerVariable('call', 'Call')

/** Numbers are doubles. A whole one that a double cannot hold is an int, so that ids can be compared. */
function valueOf(text: string): unknown {
  return hasManyDigits.test(text) ? parseJson(text, exactly) : parseJson(text)
}

const hasManyDigits = /\d{16}/
const exactly = (source: string): unknown =>
  /^-?\d{16,19}$/.test(source) && !isExact(source) ? BigInt(source) : Number(source)

/** The first part that could take long, or is not there; notes whether the expression goes through a list. */
function boundFault(
  node: ASTNode,
  search: { found: boolean },
  isWithin: boolean,
): { node: ASTNode; phrase: string } | null {
  const { op, args } = node
  if (op === 'call' && !functions.includes(args[0]))
    return { node, phrase: unknownFunction(args[0], functions) }
  if (op !== 'rcall') return firstFault(childrenOf(args), search, isWithin)
  const [name, receiver, given] = args
  if (!methods.includes(name)) return { node, phrase: unknownFunction(name, methods) }
  if (timeParts.includes(name) && given.length > 0)
    return { node, phrase: `${name} is in UTC and takes nothing` }
  if (isSearch(name) && isWithin)
    return { node, phrase: `${name} cannot be used within all, exists, exists_one or filter` }
  search.found ||= isSearch(name)
  return (
    boundFault(receiver, search, isWithin) ??
    firstFault(childrenOf(given), search, isWithin || isSearch(name))
  )
}

function firstFault(
  nodes: readonly ASTNode[],
  search: { found: boolean },
  isWithin: boolean,
): { node: ASTNode; phrase: string } | null {
  for (const node of nodes) {
    const found = boundFault(node, search, isWithin)
    if (found) return found
  }
  return null
}

const isSearch = (name: string): boolean => (searches as readonly string[]).includes(name)

const unknownFunction = (name: string, known: readonly string[]): string =>
  `there is no ${name}() here, only ${known.join(', ')}`

/** Operands of any operator: nodes, and lists of nodes or of pairs. */
function childrenOf(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(childrenOf)
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : []
}

function placeOf(text: string, at: number | undefined): string {
  const lines = text.slice(0, at ?? 0).split('\n')
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`
}
