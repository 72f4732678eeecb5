import type { TailLine } from '../../console/live-tail/live-tail.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import { count, print, printable } from '../output.ts'

const maxShownLength = 100

/** A call goes to stdout, a line each; what was left out goes to stderr. */
export function describeLine(line: TailLine): void {
  if (line.kind === 'call') print(callLine(line.call))
  if (line.kind !== 'left_out') return
  const { sampled, dropped } = line.leftOut
  if (sampled > 0) process.stderr.write(`… ${count(sampled, 'more call')}: 100 a second are shown\n`)
  if (dropped > 0) process.stderr.write(`… ${count(dropped, 'more call')}: the output is read too slowly\n`)
}

/** `12:03:04.123  track     u-1  Order Completed  {"total":30}  1f0f5a0e-…`: the messageId is what `why` takes. */
export function callLine(call: AnalyticsCall): string {
  const { type, userId, anonymousId, event, name, groupId, previousId, properties, traits, receivedAt } = call
  const time = new Date(receivedAt)
  const what = event ?? name ?? (type === 'group' ? groupId : type === 'alias' ? previousId : null)
  const parts = [
    Number.isNaN(time.getTime()) ? '-' : time.toISOString().slice(11, 23),
    type.padEnd(8),
    userId ?? anonymousId ?? '-',
    what,
    shortened(properties ?? traits),
    call.messageId,
  ]
  return printable(parts.filter((part) => part !== null && part !== '').join('  '))
}

const shortened = (json: string | null): string | null =>
  json === null || json === '{}'
    ? null
    : json.length > maxShownLength
      ? `${json.slice(0, maxShownLength)}…`
      : json
