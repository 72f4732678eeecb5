import type { ASTNode } from '@marcbachmann/cel-js'
import { quoted } from '../json/quoted.ts'
import { formatTimestamp } from '../timestamp.ts'
import {
  callFields,
  CallValues,
  ExpressionFault,
  isMapField,
  valueOfPart,
  type CallField,
} from './call-values.ts'
import {
  FaultCode,
  isFault,
  isMap,
  keyOf,
  listedKeys,
  type Evaluate,
  type Run,
  type ValueMap,
} from './evaluation.ts'
import { conversions, methods, type Conversion, type Method } from './functions.ts'
import { negated, operators, type Operator } from './operators.ts'
import { isSearch, verdicts, type Search } from './searches.ts'

/** What an expression holds that is not supported here. */
export class UnsupportedNode extends Error {
  readonly node: ASTNode

  constructor(node: ASTNode, phrase: string) {
    super(phrase)
    this.node = node
  }
}

/** Faults of one node, each made once: a condition can fail for every element of a list. */
type Fail = (code: string) => ExpressionFault

function failAt({ pos }: { pos?: number }): Fail {
  const faults = new Map<string, ExpressionFault>()
  return (code) => {
    let fault = faults.get(code)
    if (!fault) faults.set(code, (fault = new ExpressionFault(code, pos ?? 0)))
    return fault
  }
}

/**
 * What evaluates an expression that was checked.
 *
 * @param element the name that the element of a search has here; null outside of one
 */
export function compileNode(node: ASTNode, element: string | null): Evaluate {
  const compile = (child: ASTNode) => compileNode(child, element)
  const fail = failAt(node)
  switch (node.op) {
    case 'value':
      return compileLiteral(node)
    case 'id':
      if (node.args === element) return (run) => run.element
      if (node.args === 'call') return (run) => run.call
      if (node.args === 'delivery') return (run) => run.around!.delivery
      if (node.args === 'destination') return (run) => run.around!.destination
      throw new UnsupportedNode(node, `there is no ${node.args} here, only call`)
    case '.':
      return compilePath(node, element, compileMember(compile(node.args[0]), node.args[1], fail))
    case '[]':
      return compileIndex(compile(node.args[0]), compile(node.args[1]), fail)
    case 'list':
      return compileList(node.args, compile)
    case 'map':
      return compileMap(
        node.args.map(([key, value]) => [compile(key), compile(value)]),
        fail,
      )
    case '?:':
      return compileChoice(node.args, compile)
    case '&&':
      return compileLogical(false, node.args, compile)
    case '||':
      return compileLogical(true, node.args, compile)
    case '!_':
      return compileUnary(compile(node.args), (value) => (typeof value === 'boolean' ? !value : null), fail)
    case '-_':
      return compileUnary(compile(node.args), negated, fail)
    case 'call':
      return compileCall(node, compile)
    case 'rcall':
      return compileMethod(node, compile)
    case '.?':
    case '[?]':
      throw new UnsupportedNode(node, `there is no ${node.op} here`)
    default:
      return compileBinary(operators[node.op], compile(node.args[0]), compile(node.args[1]), fail)
  }
}

function compileLiteral(node: ASTNode & { op: 'value' }): Evaluate {
  const value = literalOf(node)
  return () => value
}

function literalOf(node: ASTNode & { op: 'value' }): unknown {
  const value: unknown = node.args
  if (value instanceof Uint8Array) throw new UnsupportedNode(node, 'there are no bytes here, only texts')
  // A whole number without a sign (`1u`) is an object of the library.
  return typeof value === 'object' && value !== null ? value.valueOf() : value
}

/** Undefined where there is none. */
function memberOf(value: unknown, key: string, run: Run): unknown {
  if (value instanceof CallValues)
    return Object.hasOwn(callFields, key) ? run.read(key as CallField) : undefined
  return isMap(value) && Object.hasOwn(value, key) ? value[key] : undefined
}

function compileMember(of: Evaluate, key: string, fail: Fail): Evaluate {
  return (run) => {
    const value = of(run)
    if (isFault(value)) return value
    const member = memberOf(value, key, run)
    return member === undefined ? fail('no_such_key') : member
  }
}

/** Keys from one value to the next, each with its fault. */
interface Path {
  field: string
  steps: { key: string; fail: Fail }[]
}

/** Null for what does not begin at the call. */
function pathOf(node: ASTNode, element: string | null): Path | null {
  const steps: Path['steps'] = []
  let of = node
  for (; of.op === '.'; of = of.args[0]) steps.unshift({ key: of.args[1], fail: failAt(of) })
  const first = steps.shift()
  if (!first || of.op !== 'id' || of.args !== 'call' || element === 'call') return null
  return { field: first.key, steps }
}

/**
 * A field of the call, and what keys lead to within one of its maps, is read without the rest of the map.
 *
 * @param plain the same for any value
 */
function compilePath(node: ASTNode, element: string | null, plain: Evaluate): Evaluate {
  const path = pathOf(node, element)
  if (path === null) return plain
  const { field, steps } = path
  if (!isMapField(field)) {
    const isField = steps.length === 0 && Object.hasOwn(callFields, field)
    return isField ? (run) => run.call.read(field as CallField) : plain
  }
  if (steps.length === 0) return (run) => run.read(field)
  const keys = steps.map(({ key }) => key)
  return (run) => {
    const json = run.call.jsonAt(field, keys)
    if (json === null) return plain(run)
    return typeof json === 'number' ? steps[json]!.fail('no_such_key') : valueOfPart(json)
  }
}

/**
 * What writes the JSON of a path, or gives null where it is to be evaluated; null for no path. The time of the call, and
 * `iso` of it, become no object and are not looked through for what JSON escapes.
 */
export function compileWritten(node: ASTNode): ((run: Run) => string | null) | null {
  const isIso = node.op === 'call' && node.args[0] === 'iso'
  const path = pathOf(isIso ? node.args[1][0]! : node, null)
  if (path === null) return null
  const { field, steps } = path
  if (field === 'timestamp' && steps.length === 0) return ({ call }) => `"${formatTimestamp(call.timestamp)}"`
  if (isIso) return null
  if (!isMapField(field)) {
    if (steps.length > 0 || !Object.hasOwn(callFields, field)) return null
    return (run) => {
      const value = run.call.read(field as CallField)
      if (typeof value !== 'string') return null
      run.spendText(value.length)
      return quoted(value)
    }
  }
  if (steps.length === 0) return (run) => run.call.mapText(field)
  const keys = steps.map(({ key }) => key)
  return (run) => {
    // Where a long map was read, keys are not listed.
    const json = run.hasReadLong ? null : run.call.jsonAt(field, keys)
    return typeof json === 'string' ? json : null
  }
}

function compileIndex(of: Evaluate, index: Evaluate, fail: Fail): Evaluate {
  return (run) => {
    const value = of(run)
    if (isFault(value)) return value
    const key = index(run)
    if (isFault(key)) return key
    if (Array.isArray(value)) {
      if (typeof key !== 'bigint' && typeof key !== 'number') return fail('no_such_key')
      const item = (value as unknown[])[Number(key)]
      return item === undefined ? fail('index_out_of_bounds') : item
    }
    const name = keyOf(key, run)
    const member = name === null ? undefined : memberOf(value, name, run)
    return member === undefined ? fail('no_such_key') : member
  }
}

function compileList(nodes: readonly ASTNode[], compile: (node: ASTNode) => Evaluate): Evaluate {
  const items = nodes.map(compile)
  if (nodes.every(({ op }) => op === 'value')) {
    const list = nodes.map((node) => literalOf(node as ASTNode & { op: 'value' }))
    return () => list
  }
  return (run) => {
    const list: unknown[] = []
    for (const item of items) {
      const value = item(run)
      if (isFault(value)) return value
      list.push(value)
    }
    return list
  }
}

function compileMap(entries: readonly (readonly [Evaluate, Evaluate])[], fail: Fail): Evaluate {
  return (run) => {
    const map = Object.create(null) as ValueMap
    for (const [key, value] of entries) {
      const its = key(run)
      if (isFault(its)) return its
      const name = keyOf(its, run)
      if (name === null) return fail('no_such_overload')
      const member = value(run)
      if (isFault(member)) return member
      map[name] = member
    }
    return map
  }
}

function compileChoice(
  [condition, ifTrue, ifFalse]: readonly [ASTNode, ASTNode, ASTNode],
  compile: (node: ASTNode) => Evaluate,
): Evaluate {
  const [chosen, one, other] = [compile(condition), compile(ifTrue), compile(ifFalse)]
  const fail = failAt(condition)
  return (run) => {
    const value = chosen(run)
    if (typeof value === 'boolean') return value ? one(run) : other(run)
    return isFault(value) ? value : fail('invalid_condition_type')
  }
}

/** `&&` and `||`: a side that `decides` is enough, whatever is wrong with the other. */
function compileLogical(
  decides: boolean,
  [leftNode, rightNode]: readonly [ASTNode, ASTNode],
  compile: (node: ASTNode) => Evaluate,
): Evaluate {
  const [left, right] = [compile(leftNode), compile(rightNode)]
  const [failLeft, failRight] = [failAt(leftNode), failAt(rightNode)]
  return (run) => {
    const one = left(run)
    if (one === decides) return decides
    const other = right(run)
    if (other === decides) return decides
    if (typeof one !== 'boolean') return isFault(one) ? one : failLeft('invalid_logical_operand')
    if (typeof other !== 'boolean') return isFault(other) ? other : failRight('invalid_logical_operand')
    return !decides
  }
}

function compileBinary(operator: Operator, left: Evaluate, right: Evaluate, fail: Fail): Evaluate {
  return (run) => {
    const one = left(run)
    if (isFault(one)) return one
    const other = right(run)
    if (isFault(other)) return other
    return found(operator(one, other, run), 'no_such_overload', fail)
  }
}

function compileUnary(of: Evaluate, operator: (value: unknown) => unknown, fail: Fail): Evaluate {
  return (run) => {
    const value = of(run)
    return isFault(value) ? value : found(operator(value), 'no_such_overload', fail)
  }
}

function found(result: unknown, ifNone: string, fail: Fail): unknown {
  if (result === null) return fail(ifNone)
  return result instanceof FaultCode ? fail(result.code) : result
}

function compileCall(node: ASTNode & { op: 'call' }, compile: (node: ASTNode) => Evaluate): Evaluate {
  const [name, given] = node.args
  if (name === 'has') return compileHas(given[0]!, compile)
  const convert = conversions[name as Conversion]
  const fail = failAt(node)
  const argument = compile(given[0]!)
  return (run) => {
    const value = argument(run)
    return isFault(value) ? value : found(convert(value, run), 'no_matching_overload', fail)
  }
}

function compileHas(node: ASTNode, compile: (node: ASTNode) => Evaluate): Evaluate {
  const steps: { key: string; fail: Fail }[] = []
  let of = node
  while (of.op === '.') {
    steps.unshift({ key: of.args[1], fail: failAt(of) })
    of = of.args[0]
  }
  const last = steps.pop()!
  const base = compile(of)
  return (run) => {
    let value = base(run)
    for (const { key, fail } of steps) {
      value = memberOf(value, key, run)
      if (value === undefined) return fail('no_such_key')
      if (isFault(value)) return value
    }
    const member = memberOf(value, last.key, run)
    return isFault(member) ? member : member !== undefined
  }
}

function compileMethod(node: ASTNode & { op: 'rcall' }, compile: (node: ASTNode) => Evaluate): Evaluate {
  const [name, receiverNode, given] = node.args
  const receiver = compile(receiverNode)
  const fail = failAt(node)
  if (isSearch(name)) return compileSearch(name, receiver, given, failAt(receiverNode))
  const argument = given[0] ? compile(given[0]) : null
  const method = methods[name as Method]
  return (run) => {
    const value = receiver(run)
    if (isFault(value)) return value
    const other = argument === null ? null : argument(run)
    return isFault(other) ? other : found(method(value, other, run), 'no_matching_overload', fail)
  }
}

function compileSearch(
  search: Search,
  receiver: Evaluate,
  [variable, conditionNode]: readonly ASTNode[],
  fail: Fail,
): Evaluate {
  const condition = compileNode(conditionNode!, variable!.args as string)
  const failCondition = failAt(conditionNode!)
  const steps = nodesIn(conditionNode!) + 1
  const holdsFor = (item: unknown, run: Run): boolean | ExpressionFault => {
    run.spend(steps)
    run.element = item
    const value = condition(run)
    return typeof value === 'boolean' || isFault(value) ? value : failCondition('invalid_condition_type')
  }
  const verdictOf = verdicts[search]
  return (evaluation) => {
    const value = receiver(evaluation)
    if (isFault(value)) return value
    if (!Array.isArray(value) && !isMap(value)) return fail('invalid_comprehension_range')
    const items = Array.isArray(value) ? (value as unknown[]) : listedKeys(value, evaluation)
    if (items instanceof FaultCode) return fail(items.code)
    return verdictOf(items, (item) => holdsFor(item, evaluation))
  }
}

const nodesIn = (node: ASTNode): number =>
  childrenOf(node.args).reduce((sum, child) => sum + nodesIn(child), 1)

/** Operands of any operator: nodes, and lists of nodes or of pairs. */
export function childrenOf(args: unknown): ASTNode[] {
  if (Array.isArray(args)) return args.flatMap(childrenOf)
  return typeof args === 'object' && args !== null && 'op' in args ? [args as ASTNode] : []
}
