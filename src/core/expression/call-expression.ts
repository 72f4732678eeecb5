// CEL is a pure function of an expression and a call: core imports a library for it.
import { Environment, ParseError, type ASTNode } from '@marcbachmann/cel-js'
import { callFields, ExpressionFault, type CallValues } from './call-values.ts'
import { maxSteps, OutOfSteps, Run, type Evaluate } from './evaluation.ts'
import { functions, textMethods, timeParts } from './functions.ts'
import { childrenOf, compileNode, UnsupportedNode } from './nodes.ts'
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

/** The expression, or what is wrong with its text and where. */
export function compileExpression(
  text: string,
): { expression: CallExpression; fault: null } | { expression: null; fault: string } {
  const refused = (fault: string) => ({ expression: null, fault })
  if (text.length > maxExpressionLength)
    return refused(`it has ${text.length} characters, at most ${maxExpressionLength} are allowed`)
  try {
    const parsed = environment.parse(text)
    const fault = boundFault(parsed.ast, false)
    if (fault !== null) return refused(`${placeOf(text, fault.node.start)}: ${fault.phrase}`)
    const { type, error } = parsed.check()
    if (error) return refused(`${placeOf(text, error.range?.start)}: ${error.summary}`)
    if (type !== 'bool' && type !== 'dyn')
      return refused(`it gives a value of type ${type}, not true or false`)
    return { expression: new CompiledExpression(text, compileNode(parsed.ast, null)), fault: null }
  } catch (error) {
    if (error instanceof ParseError) return refused(`${placeOf(text, error.range?.start)}: ${error.summary}`)
    if (error instanceof UnsupportedNode)
      return refused(`${placeOf(text, error.node.start)}: ${error.message}`)
    // Whatever else it throws for this text it would throw for it again.
    return refused(error instanceof Error ? error.message : String(error))
  }
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
    const { reason, at } = value
    return { reason: at === null ? reason : `${reason} at ${placeOf(this.#text, at)}` }
  }
}

const tooManySteps = `it would take more than ${maxSteps} steps`

const environment = new Environment({ limits: { maxAstNodes: maxNodes, maxDepth } })
  .registerType('Call', { fields: callFields })
  .registerVariable('call', 'Call')

/** The first part that could take long, or is not there. */
function boundFault(node: ASTNode, isWithin: boolean): { node: ASTNode; phrase: string } | null {
  const { op, args } = node
  if (op === 'call' && !(functions as readonly string[]).includes(args[0]))
    return { node, phrase: unknownFunction(args[0], functions) }
  if (op !== 'rcall') return firstFault(childrenOf(args), isWithin)
  const [name, receiver, given] = args
  if (!methods.includes(name)) return { node, phrase: unknownFunction(name, methods) }
  if ((timeParts as readonly string[]).includes(name) && given.length > 0)
    return { node, phrase: `${name} is in UTC and takes nothing` }
  if (isSearch(name) && isWithin)
    return { node, phrase: `${name} cannot be used within all, exists, exists_one or filter` }
  return boundFault(receiver, isWithin) ?? firstFault(childrenOf(given), isWithin || isSearch(name))
}

function firstFault(nodes: readonly ASTNode[], isWithin: boolean): { node: ASTNode; phrase: string } | null {
  for (const node of nodes) {
    const found = boundFault(node, isWithin)
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
