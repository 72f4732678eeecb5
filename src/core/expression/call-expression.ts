// CEL is a pure function of an expression and a call: core imports a library for it.
import { Environment, ParseError, type ASTNode } from '@marcbachmann/cel-js'
import { callFields, ExpressionFault, type CallField, type CallValues } from './call-values.ts'
import { maxSteps, OutOfSteps, Run, type Evaluate } from './evaluation.ts'
import { functions, holeFunctions, textMethods, timeParts } from './functions.ts'
import { childrenOf, compileNode, compileWritten, UnsupportedNode } from './nodes.ts'
import { isSearch, searches } from './searches.ts'

export const maxExpressionLength = 2_000
const maxNodes = 500
const maxDepth = 50

/**
 * There is no `matches`, whose regular expressions may take for ever here, and no `map` or `bind`, which can double a
 * value again and again.
 */
const methods: readonly string[] = [...textMethods, ...timeParts, ...searches]

/** A condition on calls, in CEL. */
export interface CallExpression {
  /** Whether it holds; why that cannot be said, for instance `no_such_key at line 1, column 6`. */
  evaluate(call: CallValues): boolean | EvaluationFault
}

/** In one line, without anything of the call's content. */
export interface EvaluationFault {
  reason: string
}

/** An expression whose value stands in a request: a hole of a template. */
export interface ValueExpression {
  readonly text: string
  /** The field of the call that it names, if it is nothing else: where that is null, the call has none. */
  readonly field: CallField | null
  /** The value; a fault where there is none. `OutOfSteps` is thrown. */
  readonly evaluate: Evaluate
  /** The JSON of the value, where that stands in the call; null where it is to be evaluated. */
  readonly written: ((run: Run) => string | null) | null
}

type Compiled<T> = { expression: T; fault: null } | { expression: null; fault: string }
const refused = (fault: string) => ({ expression: null, fault })

/** The condition, or what is wrong with its text and where. */
export function compileExpression(text: string): Compiled<CallExpression> {
  const { parsed, fault } = parsedOf(text, conditions, functions)
  if (fault !== null) return refused(fault)
  const { type, ast } = parsed
  if (type !== 'bool' && type !== 'dyn') return refused(`it gives a value of type ${type}, not true or false`)
  return compiledOf(text, ast, (evaluate) => new CompiledExpression(text, evaluate))
}

/** The same of a value. It reads `delivery` and `destination` too, and has functions of its own. */
export function compileValue(text: string): Compiled<ValueExpression> {
  const { parsed, fault } = parsedOf(text, holes, [...functions, ...holeFunctions])
  if (fault !== null) return refused(fault)
  const { type, ast } = parsed
  if (type === 'Call' || type === 'Delivery' || type === 'Destination')
    return refused(`it gives the whole ${type.toLowerCase()}: name what of it, such as call.event`)
  const isField = ast.op === '.' && ast.args[0].op === 'id' && ast.args[0].args === 'call'
  const field = isField ? (ast.args[1] as CallField) : null
  const written = compileWritten(ast)
  return compiledOf(text, ast, (evaluate) => ({ text, field, evaluate, written }))
}

interface Parsed {
  ast: ASTNode
  type: string
}

function parsedOf(
  text: string,
  environment: Environment,
  known: readonly string[],
): { parsed: Parsed; fault: null } | { parsed: null; fault: string } {
  const refusal = (fault: string) => ({ parsed: null, fault })
  if (text.length > maxExpressionLength)
    return refusal(`it has ${text.length} characters, at most ${maxExpressionLength} are allowed`)
  try {
    const parsed = environment.parse(text)
    const fault = boundFault(parsed.ast, false, known)
    if (fault !== null) return refusal(`${placeOf(text, fault.node.start)}: ${fault.phrase}`)
    const { type, error } = parsed.check()
    if (error) return refusal(`${placeOf(text, error.range?.start)}: ${error.summary}`)
    return { parsed: { ast: parsed.ast, type: String(type) }, fault: null }
  } catch (error) {
    return refusal(phraseOf(text, error))
  }
}

function compiledOf<T>(text: string, ast: ASTNode, of: (evaluate: Evaluate) => T): Compiled<T> {
  try {
    return { expression: of(compileNode(ast, null)), fault: null }
  } catch (error) {
    return refused(phraseOf(text, error))
  }
}

function phraseOf(text: string, error: unknown): string {
  if (error instanceof ParseError) return `${placeOf(text, error.range?.start)}: ${error.summary}`
  if (error instanceof UnsupportedNode) return `${placeOf(text, error.node.start)}: ${error.message}`
  // Whatever else it throws for this text it would throw for it again.
  return error instanceof Error ? error.message : String(error)
}

class CompiledExpression implements CallExpression {
  readonly #text: string
  readonly #evaluate: Evaluate

  constructor(text: string, evaluate: Evaluate) {
    this.#text = text
    this.#evaluate = evaluate
  }

  evaluate(values: CallValues): boolean | EvaluationFault {
    let value: unknown
    try {
      value = this.#evaluate(new Run(values))
    } catch (error) {
      return { reason: error instanceof OutOfSteps ? tooManySteps : 'a value cannot be read' }
    }
    if (typeof value === 'boolean') return value
    if (!(value instanceof ExpressionFault)) return { reason: 'its value is neither true nor false' }
    return { reason: reasonOf(this.#text, value) }
  }
}

/** With where in the expression's text. */
export const reasonOf = (text: string, { reason, at }: ExpressionFault): string =>
  at === null ? reason : `${reason} at ${placeOf(text, at)}`

export const tooManySteps = `it would take more than ${maxSteps} steps`

const conditions = new Environment({ limits: { maxAstNodes: maxNodes, maxDepth } })
  .registerType('Call', { fields: callFields })
  .registerVariable('call', 'Call')

const notRun = () => null
const holes = conditions
  .clone()
  .registerType('Delivery', { fields: { id: 'string', attempt: 'int' } })
  .registerType('Destination', { fields: { id: 'string', name: 'string' } })
  .registerVariable('delivery', 'Delivery')
  .registerVariable('destination', 'Destination')
  .registerFunction('json(dyn): string', notRun)
  .registerFunction('iso(dyn): string', notRun)
  .registerFunction('unix(dyn): int', notRun)
  .registerFunction('lower(dyn): string', notRun)
  .registerFunction('sha256(dyn): string', notRun)

/** The first part that could take long, or is not there. */
function boundFault(
  node: ASTNode,
  isWithin: boolean,
  known: readonly string[],
): { node: ASTNode; phrase: string } | null {
  const { op, args } = node
  if (op === 'call' && !known.includes(args[0])) return { node, phrase: unknownFunction(args[0], known) }
  if (op !== 'rcall') return firstFault(childrenOf(args), isWithin, known)
  const [name, receiver, given] = args
  if (!methods.includes(name)) return { node, phrase: unknownFunction(name, methods) }
  if ((timeParts as readonly string[]).includes(name) && given.length > 0)
    return { node, phrase: `${name} is in UTC and takes nothing` }
  if (isSearch(name) && isWithin)
    return { node, phrase: `${name} cannot be used within all, exists, exists_one or filter` }
  return (
    boundFault(receiver, isWithin, known) ?? firstFault(childrenOf(given), isWithin || isSearch(name), known)
  )
}

function firstFault(
  nodes: readonly ASTNode[],
  isWithin: boolean,
  known: readonly string[],
): { node: ASTNode; phrase: string } | null {
  for (const node of nodes) {
    const found = boundFault(node, isWithin, known)
    if (found) return found
  }
  return null
}

const unknownFunction = (name: string, known: readonly string[]): string =>
  `there is no ${name}() here, only ${known.join(', ')}`

function placeOf(text: string, at: number | undefined): string {
  const lines = text.slice(0, at ?? 0).split('\n')
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}`
}
