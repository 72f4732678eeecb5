import {
  Duration,
  FaultCode,
  intOf,
  invalidTime,
  isMap,
  kindOf,
  listedKeys,
  nanosOf,
  overflow,
  timeOf,
  type Run,
} from './evaluation.ts'
import { jsonOf } from './json-text.ts'
import { formatTimestamp, parseTimestamp } from '../timestamp.ts'

/** Longer texts are no number, time or duration. */
const maxConvertedLength = 100

export type Conversion = Exclude<(typeof functions)[number], 'has'> | (typeof holeFunctions)[number]
export const functions = ['has', 'size', 'int', 'double', 'string', 'bool', 'timestamp', 'duration'] as const
/** What templates have beside these. */
export const holeFunctions = ['json', 'iso', 'unix', 'lower', 'sha256'] as const

/** Null where there is no such conversion of the value. */
export const conversions: Record<Conversion, (value: unknown, run: Run) => unknown> = {
  size(value, run) {
    if (typeof value === 'string') return BigInt(characters(value, run))
    if (Array.isArray(value)) return BigInt(value.length)
    if (!isMap(value)) return null
    const keys = listedKeys(value, run)
    return keys instanceof FaultCode ? keys : BigInt(keys.length)
  },
  int(value) {
    if (typeof value === 'bigint') return value
    if (typeof value === 'number') return Number.isFinite(value) ? intOf(BigInt(Math.trunc(value))) : overflow
    if (typeof value !== 'string') return null
    const isInt = value.length <= maxConvertedLength && /^[-+]?\d{1,19}$/.test(value)
    const int = isInt ? intOf(BigInt(value)) : overflow
    return int === overflow ? new FaultCode('int_conversion_error') : int
  },
  double(value) {
    if (typeof value === 'number') return value
    if (typeof value === 'bigint') return Number(value)
    return typeof value === 'string' ? doubleOf(value) : null
  },
  string(value) {
    switch (kindOf(value)) {
      case 'string':
        return value
      case 'double':
        return value === Infinity ? '+Inf' : value === -Infinity ? '-Inf' : String(value)
      case 'int':
      case 'bool':
        return String(value)
      default:
        return null
    }
  },
  bool(value) {
    if (typeof value === 'boolean') return value
    if (typeof value !== 'string') return null
    if (['1', 't', 'true', 'TRUE', 'True'].includes(value)) return true
    return ['0', 'f', 'false', 'FALSE', 'False'].includes(value)
      ? false
      : new FaultCode('bool_conversion_error')
  },
  timestamp(value) {
    if (typeof value === 'bigint') return timeOf(Number(value) * 1_000)
    if (typeof value !== 'string') return null
    return value.length < 20 || value.length > 30 ? invalidTime : timeOf(parseTimestamp(value) ?? NaN)
  },
  duration: (value) => (typeof value === 'string' ? durationOf(value) : null),
  json: (value, run) => jsonOf(value, run),
  iso(value) {
    const time = momentOf(value)
    return time instanceof Date ? formatTimestamp(time.getTime()) : time
  },
  unix(value) {
    const time = momentOf(value)
    return time instanceof Date ? BigInt(Math.floor(time.getTime() / 1_000)) : time
  },
  lower(value, run) {
    if (typeof value !== 'string') return null
    run.spend(value.length)
    return value.toLowerCase()
  },
  sha256(value, run) {
    if (typeof value !== 'string') return null
    run.spend(value.length)
    return run.around!.sha256(value)
  },
}

/** A time, or ms since 1970. */
function momentOf(value: unknown): Date | FaultCode | null {
  if (value instanceof Date) return value
  if (typeof value !== 'number' && typeof value !== 'bigint') return null
  return timeOf(Math.trunc(Number(value))) as Date | FaultCode
}

function doubleOf(text: string): unknown {
  const invalid = new FaultCode('double_conversion_error')
  if (text === '' || text.length > maxConvertedLength || text !== text.trim()) return invalid
  const infinite = /^([-+]?)inf(?:inity)?$/i.exec(text)
  if (infinite) return infinite[1] === '-' ? -Infinity : Infinity
  if (/^nan$/i.test(text)) return NaN
  const value = Number(text)
  return Number.isNaN(value) ? invalid : value
}

/** As Go writes it: `-1.5h`, `2h45m`. */
function durationOf(text: string): unknown {
  const invalid = new FaultCode('invalid_duration')
  if (text.length > maxConvertedLength) return invalid
  const sign = /^[-+]/.exec(text)?.[0] ?? ''
  const part = /(\d*)(?:\.(\d*))?(ns|us|µs|ms|s|m|h)/y
  part.lastIndex = sign.length
  let nanos = 0n
  while (part.lastIndex < text.length || text.length === sign.length) {
    const match = part.exec(text)
    if (!match) return invalid
    const [, whole = '', fraction = '', unit] = match
    if (whole === '' && fraction === '') return invalid
    const its = nanosOf[unit as keyof typeof nanosOf]
    nanos += (BigInt(whole + fraction) * its) / 10n ** BigInt(fraction.length)
  }
  return new Duration(sign === '-' ? -nanos : nanos)
}

/** Code points. */
function characters(text: string, run: Run): number {
  run.spendText(text.length)
  let pairs = 0
  for (let at = 1; at < text.length; at++) {
    const isLow = (text.charCodeAt(at) & 0xfc00) === 0xdc00
    if (isLow && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) pairs++
  }
  return text.length - pairs
}

export type Method = (typeof textMethods)[number] | (typeof timeParts)[number]
export const textMethods = [
  'size',
  'startsWith',
  'endsWith',
  'contains',
  'lowerAscii',
  'upperAscii',
  'trim',
] as const
export const timeParts = [
  'getFullYear',
  'getMonth',
  'getDate',
  'getDayOfMonth',
  'getDayOfWeek',
  'getHours',
  'getMinutes',
  'getSeconds',
  'getMilliseconds',
] as const

/** Null where the value has no such method. */
type MethodOf = (value: unknown, argument: unknown, run: Run) => unknown

const onTexts =
  (method: (text: string, argument: string, run: Run) => boolean): MethodOf =>
  (value, argument, run) =>
    typeof value === 'string' && typeof argument === 'string' ? method(value, argument, run) : null

const onText =
  (cost: (run: Run, length: number) => void, method: (text: string) => string): MethodOf =>
  (value, _argument, run) => {
    if (typeof value !== 'string') return null
    cost(run, value.length)
    return method(value)
  }

const onTime =
  (ofTime: (time: Date) => number, unit?: bigint): MethodOf =>
  (value) => {
    if (value instanceof Duration) return unit === undefined ? null : value.nanos / unit
    if (!(value instanceof Date)) return null
    const part = ofTime(value)
    return Number.isNaN(part) ? invalidTime : BigInt(part)
  }

export const methods: Record<Method, MethodOf> = {
  size: (value, _argument, run) => conversions.size(value, run),
  startsWith: onTexts((text, start, run) => {
    run.spendText(start.length)
    return text.startsWith(start)
  }),
  endsWith: onTexts((text, end, run) => {
    run.spendText(end.length)
    return text.endsWith(end)
  }),
  contains: onTexts(contains),
  lowerAscii: onText(
    (run, length) => run.spend(length),
    (text) => text.toLowerCase(),
  ),
  upperAscii: onText(
    (run, length) => run.spend(length),
    (text) => text.toUpperCase(),
  ),
  trim: onText(
    (run, length) => run.spendText(length),
    (text) => text.trim(),
  ),
  getFullYear: onTime((time) => time.getUTCFullYear()),
  getMonth: onTime((time) => time.getUTCMonth()),
  getDate: onTime((time) => time.getUTCDate()),
  getDayOfMonth: onTime((time) => time.getUTCDate() - 1),
  getDayOfWeek: onTime((time) => time.getUTCDay()),
  getHours: onTime((time) => time.getUTCHours(), nanosOf.h),
  getMinutes: onTime((time) => time.getUTCMinutes(), nanosOf.m),
  getSeconds: onTime((time) => time.getUTCSeconds(), nanosOf.s),
  getMilliseconds: onTime((time) => time.getUTCMilliseconds(), nanosOf.ms),
}

/** Texts up to this length are searched as JavaScript does it: in the worst case in their length times the other's. */
const maxPlainSearch = 256

/** In time that grows with the sum of both lengths (Knuth, Morris, Pratt): JavaScript takes their product at worst. */
function contains(text: string, part: string, run: Run): boolean {
  if (part.length > text.length) return false
  run.spendText(text.length + part.length)
  if (text.length <= maxPlainSearch || part === '') return text.includes(part)
  // By length of what matched of the part: how much of it still matches one character on.
  const falls = new Int32Array(part.length + 1)
  let matched = 0
  for (let at = 1; at < part.length; at++) {
    while (matched > 0 && part.charCodeAt(at) !== part.charCodeAt(matched)) matched = falls[matched]!
    if (part.charCodeAt(at) === part.charCodeAt(matched)) matched++
    falls[at + 1] = matched
  }
  matched = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    while (matched > 0 && code !== part.charCodeAt(matched)) matched = falls[matched]!
    if (code === part.charCodeAt(matched) && ++matched === part.length) return true
  }
  return false
}
