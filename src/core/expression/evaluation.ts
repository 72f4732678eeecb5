import { CallValues, ExpressionFault, type CallField } from './call-values.ts'

/**
 * CEL on the plain values of a call. The library parses and checks an expression; its own evaluation makes a type of each
 * value that an operator meets and keeps it for ever, so a sender could fill the memory and block the process.
 *
 * Whatever is done for a value is counted in steps, so no call can make an evaluation long. One step is about ten
 * nanoseconds.
 *
 * | what | steps |
 * |---|---|
 * | an element of a search | the nodes of the search's condition, and one |
 * | a comparison within `==`, `!=` and `in` | 1 |
 * | an element of a list that `+` makes, a key of a map that is listed | 1 |
 * | 16 characters that are compared, searched, joined, trimmed or counted, or are a key | 1 |
 * | a character that `lower`, `lowerAscii` or `upperAscii` changes, or that `sha256` reads | 1 |
 *
 * What is done once for each node is not counted: an expression has at most 500 of them.
 */
export const maxSteps = 100_000

/** A value of the expression: a fault where there is none. */
export type Evaluate = (run: Run) => unknown

/** What the holes of a template read beside the call. */
export interface Surroundings {
  readonly delivery: Readonly<ValueMap>
  readonly destination: Readonly<ValueMap>
  /** In lowercase hex. */
  sha256(text: string): string
}

/** One evaluation, of an expression or of all that one request is made of. */
export class Run {
  readonly call: CallValues
  /** Null for a condition. */
  readonly around: Surroundings | null
  /** Of the search that is under evaluation; searches do not stand within each other. */
  element: unknown = null
  /** A map was read that may have too many keys to be listed. */
  hasReadLong = false
  #stepsLeft = maxSteps

  constructor(call: CallValues, around: Surroundings | null = null) {
    this.call = call
    this.around = around
  }

  get steps(): number {
    return maxSteps - this.#stepsLeft
  }

  spend(steps: number): void {
    if ((this.#stepsLeft -= steps) < 0) throw outOfSteps
  }

  spendText(length: number): void {
    if (length >= 16) this.spend(length >> 4)
  }

  read(field: CallField): unknown {
    this.hasReadLong ||= this.call.isLong(field)
    return this.call.read(field)
  }
}

/** Ends an evaluation whatever the expression makes of faults. */
export class OutOfSteps extends Error {}
const outOfSteps = new OutOfSteps()

export class Duration {
  readonly nanos: bigint

  constructor(nanos: bigint) {
    this.nanos = nanos
  }
}

export type ValueKind =
  'null' | 'bool' | 'int' | 'double' | 'string' | 'time' | 'duration' | 'list' | 'map' | 'call'

export function kindOf(value: unknown): ValueKind {
  switch (typeof value) {
    case 'string':
      return 'string'
    case 'number':
      return 'double'
    case 'boolean':
      return 'bool'
    case 'bigint':
      return 'int'
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'list'
  if (value instanceof Date) return 'time'
  if (value instanceof Duration) return 'duration'
  return value instanceof CallValues ? 'call' : 'map'
}

export type ValueMap = Record<string, unknown>
export const isMap = (value: unknown): value is ValueMap => kindOf(value) === 'map'
export const isFault = (value: unknown): value is ExpressionFault => value instanceof ExpressionFault

const maxInt = 2n ** 63n - 1n
const minInt = -(2n ** 63n)

/** A number of 64 bits, or the code of the fault. */
export class FaultCode {
  readonly code: string

  constructor(code: string) {
    this.code = code
  }
}
export const overflow = new FaultCode('numeric_overflow')
export const invalidTime = new FaultCode('invalid_timestamp')
export const intOf = (value: bigint): unknown => (value <= maxInt && value >= minInt ? value : overflow)

export const isNumeric = (value: unknown): value is number | bigint =>
  typeof value === 'number' || typeof value === 'bigint'

/** Null for what is no key of a map. */
export function keyOf(value: unknown, run: Run): string | null {
  if (typeof value === 'string') {
    run.spendText(value.length)
    return value
  }
  return typeof value === 'object' ? null : String(value)
}

/** Listing tens of thousands of keys takes far more time than a step for each. */
export function listedKeys(map: ValueMap, run: Run): string[] | FaultCode {
  if (run.hasReadLong) return tooManyKeys
  const keys = Object.keys(map)
  run.spend(keys.length)
  return keys
}
const tooManyKeys = new FaultCode('too_many_keys')

export const nanosOf = {
  h: 3_600_000_000_000n,
  m: 60_000_000_000n,
  s: 1_000_000_000n,
  ms: 1_000_000n,
  us: 1_000n,
  µs: 1_000n,
  ns: 1n,
}

const [minTime, maxTime] = [-62_135_596_800_000, 253_402_300_799_999]
export const timeOf = (ms: number): unknown => (ms >= minTime && ms <= maxTime ? new Date(ms) : invalidTime)
