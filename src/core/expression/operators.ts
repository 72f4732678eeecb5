import {
  Duration,
  FaultCode,
  intOf,
  invalidTime,
  isMap,
  isNumeric,
  keyOf,
  kindOf,
  listedKeys,
  nanosOf,
  timeOf,
  type Run,
  type ValueMap,
} from './evaluation.ts'

/** Lists and maps within each other that `==` looks into. */
export const maxComparedDepth = 10

/** Null where there is no such operator for these operands. */
export type Operator = (left: unknown, right: unknown, run: Run) => unknown

export function negated(value: unknown): unknown {
  if (typeof value === 'number') return -value
  return typeof value === 'bigint' ? intOf(-value) : null
}

const comparison =
  (holds: (order: number) => boolean): Operator =>
  (left, right, run) => {
    const order = orderOf(left, right, run)
    return order === null ? null : holds(order)
  }

/** Below, at or above 0; NaN where neither holds, null where the two have no order. */
function orderOf(left: unknown, right: unknown, run: Run): number | null {
  const [one, other] = [comparable(left), comparable(right)]
  if (typeof one === 'string' && typeof other === 'string') {
    run.spendText(Math.min(one.length, other.length))
    return one === other ? 0 : one < other ? -1 : 1
  }
  if (one === null || other === null || typeof one === 'string' || typeof other === 'string') return null
  if (kindOf(left) !== kindOf(right) && !(isNumeric(left) && isNumeric(right))) return null
  return one < other ? -1 : one > other ? 1 : one >= other ? 0 : NaN
}

function comparable(value: unknown): string | number | bigint | null {
  switch (typeof value) {
    case 'string':
    case 'number':
    case 'bigint':
      return value
    case 'boolean':
      return Number(value)
  }
  if (value instanceof Date) return value.getTime()
  return value instanceof Duration ? value.nanos : null
}

function isEqual(left: unknown, right: unknown, run: Run, depth = 0): boolean | FaultCode {
  run.spend(1)
  if (typeof left === 'string' && typeof right === 'string') {
    if (left.length !== right.length) return false
    run.spendText(left.length)
    return left === right
  }
  if (left === right) return true
  if (typeof left !== 'object' || typeof right !== 'object')
    // Only numbers of both kinds are equal to one another without being the same.
    return (
      typeof left !== typeof right && isNumeric(left) && isNumeric(right) && left >= right && left <= right
    )
  const kind = kindOf(left)
  if (kind !== kindOf(right)) return false
  if (kind === 'time' || kind === 'duration') return comparable(left) === comparable(right)
  if (kind !== 'list' && kind !== 'map') return false
  if (depth === maxComparedDepth) return tooDeep
  return kind === 'list'
    ? areListsEqual(left as unknown[], right as unknown[], run, depth + 1)
    : areMapsEqual(left as ValueMap, right as ValueMap, run, depth + 1)
}
const tooDeep = new FaultCode('nested_too_deep')

function areListsEqual(
  left: readonly unknown[],
  right: readonly unknown[],
  run: Run,
  depth: number,
): boolean | FaultCode {
  if (left.length !== right.length) return false
  for (let index = 0; index < left.length; index++) {
    const verdict = isEqual(left[index], right[index], run, depth)
    if (verdict !== true) return verdict
  }
  return true
}

function areMapsEqual(left: ValueMap, right: ValueMap, run: Run, depth: number): boolean | FaultCode {
  const keys = listedKeys(left, run)
  const others = listedKeys(right, run)
  if (keys instanceof FaultCode) return keys
  if (others instanceof FaultCode) return others
  if (keys.length !== others.length) return false
  for (const key of keys) {
    if (!Object.hasOwn(right, key)) return false
    const verdict = isEqual(left[key], right[key], run, depth)
    if (verdict !== true) return verdict
  }
  return true
}

function isIn(value: unknown, all: unknown, run: Run): unknown {
  if (Array.isArray(all)) {
    for (const item of all) {
      const verdict = isEqual(value, item, run)
      if (verdict !== false) return verdict
    }
    return false
  }
  if (!isMap(all)) return null
  const key = keyOf(value, run)
  return key !== null && Object.hasOwn(all, key)
}

function sum(left: unknown, right: unknown, run: Run): unknown {
  if (typeof left === 'number' && typeof right === 'number') return left + right
  if (typeof left === 'bigint' && typeof right === 'bigint') return intOf(left + right)
  if (typeof left === 'string' && typeof right === 'string') {
    run.spend(1)
    run.spendText(left.length + right.length)
    return left + right
  }
  if (Array.isArray(left) && Array.isArray(right)) {
    run.spend(left.length + right.length + 1)
    return [...(left as unknown[]), ...(right as unknown[])]
  }
  if (left instanceof Duration && right instanceof Duration) return new Duration(left.nanos + right.nanos)
  if (left instanceof Date && right instanceof Duration) return moved(left, right.nanos)
  return left instanceof Duration && right instanceof Date ? moved(right, left.nanos) : null
}

function difference(left: unknown, right: unknown): unknown {
  if (typeof left === 'number' && typeof right === 'number') return left - right
  if (typeof left === 'bigint' && typeof right === 'bigint') return intOf(left - right)
  if (left instanceof Duration && right instanceof Duration) return new Duration(left.nanos - right.nanos)
  if (!(left instanceof Date)) return null
  if (right instanceof Duration) return moved(left, -right.nanos)
  if (!(right instanceof Date)) return null
  const ms = left.getTime() - right.getTime()
  return Number.isNaN(ms) ? invalidTime : new Duration(BigInt(ms) * nanosOf.ms)
}

const moved = (time: Date, nanos: bigint): unknown => timeOf(time.getTime() + Number(nanos / nanosOf.ms))

export const operators: Record<Exclude<BinaryOperator, '&&' | '||'>, Operator> = {
  '==': isEqual,
  '!=': (left, right, run) => {
    const verdict = isEqual(left, right, run)
    return typeof verdict === 'boolean' ? !verdict : verdict
  },
  '<': comparison((order) => order < 0),
  '<=': comparison((order) => order <= 0),
  '>': comparison((order) => order > 0),
  '>=': comparison((order) => order >= 0),
  in: isIn,
  '+': sum,
  '-': difference,
  '*': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left * right
    return typeof left === 'bigint' && typeof right === 'bigint' ? intOf(left * right) : null
  },
  '/': (left, right) => {
    if (typeof left === 'number' && typeof right === 'number') return left / right
    if (typeof left !== 'bigint' || typeof right !== 'bigint') return null
    return right === 0n ? new FaultCode('division_by_zero') : intOf(left / right)
  },
  '%': (left, right) => {
    if (typeof left !== 'bigint' || typeof right !== 'bigint') return null
    return right === 0n ? new FaultCode('modulo_by_zero') : left % right
  },
}
type BinaryOperator = '==' | '!=' | '<' | '<=' | '>' | '>=' | 'in' | '+' | '-' | '*' | '/' | '%' | '&&' | '||'
