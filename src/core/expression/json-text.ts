import { quoted } from '../json/quoted.ts'
import { formatTimestamp } from '../timestamp.ts'
import { FaultCode, kindOf, listedKeys, type Run, type ValueMap } from './evaluation.ts'

/** Of lists and maps within each other: the stack of a sender's value must not be ours. */
const maxDepth = 100

const noJson = new FaultCode('no_json')
const tooDeep = new FaultCode('too_deep')
const invalidTime = new FaultCode('invalid_timestamp')

/** The JSON of a value as JSON.stringify writes it; a time is ISO 8601, a whole number has all of its digits. */
export function jsonOf(value: unknown, run: Run, depth = 0): string | FaultCode {
  if (depth > maxDepth) return tooDeep
  switch (kindOf(value)) {
    case 'string':
      run.spendText((value as string).length)
      return quoted(value as string)
    case 'double':
      return Number.isFinite(value) ? String(value as number) : noJson
    case 'int':
    case 'bool':
      return String(value)
    case 'null':
      return 'null'
    case 'time': {
      const at = (value as Date).getTime()
      return Number.isNaN(at) ? invalidTime : `"${formatTimestamp(at)}"`
    }
    case 'list':
      return joined(value as unknown[], (item) => jsonOf(item, run, depth + 1), run, ['[', ']'])
    case 'map': {
      const map = value as ValueMap
      const keys = listedKeys(map, run)
      if (keys instanceof FaultCode) return keys
      const memberOf = (key: string) => {
        const member = jsonOf(map[key], run, depth + 1)
        return member instanceof FaultCode ? member : `${quoted(key)}:${member}`
      }
      return joined(keys, memberOf, run, ['{', '}'])
    }
    default:
      return noJson
  }
}

function joined<T>(
  items: readonly T[],
  textOf: (item: T) => string | FaultCode,
  run: Run,
  [open, close]: readonly [string, string],
): string | FaultCode {
  let text = open
  run.spend(items.length)
  for (const item of items) {
    const its = textOf(item)
    if (its instanceof FaultCode) return its
    text += text === open ? its : `,${its}`
  }
  return text + close
}
