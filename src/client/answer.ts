import { parseRetryAfter } from '../core/delivery/retry-after.ts'
import type { RejectedItem, SendResult } from './transport.ts'

/** 5xx that will be the same the next time: not implemented, HTTP version, network login. */
const finalServerErrors = [501, 505, 511]
const retriedClientErrors = [408, 425, 429]

const longestMessage = 300

/** What a collector's answer to a batch of `calls` calls means. `now` is in epoch milliseconds. */
export function readAnswer(
  answer: { status: number; retryAfter: string | undefined; body: string },
  calls: number,
  now: number,
): SendResult {
  const { status, retryAfter } = answer
  const body = jsonObject(answer.body)
  const rejected = rejectedItems(body, calls)
  // Anything may answer 200 where no collector is: only its own words count.
  if (status === 200 && body?.success === true) {
    // Not all that were rejected are named: the others come again, and those that were accepted are known by their ids.
    if (rejected !== null && body.moreRejected !== undefined) return { kind: 'rejected', rejected }
    return { kind: 'accepted', rejected: rejected ?? [] }
  }
  if (status === 400 && rejected !== null) return { kind: 'rejected', rejected }
  const message = `HTTP ${status}${describe(body)}`
  if (status < 300)
    return { kind: 'unavailable', message: `${message}: not a collector's answer`, retryAfterMs: null }
  if (retriedClientErrors.includes(status) || (status >= 500 && !finalServerErrors.includes(status))) {
    const retryAfterMs = retryAfter === undefined ? null : parseRetryAfter(retryAfter, now)
    return { kind: 'unavailable', message, retryAfterMs }
  }
  return { kind: 'refused', message: status < 400 ? `${message}: redirects are not followed` : message }
}

type JsonObject = Record<string, unknown>

function jsonObject(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as JsonObject) : null
  } catch {
    return null
  }
}

/** Null unless there is at least one, and each names another call of the batch. */
function rejectedItems(body: JsonObject | null, calls: number): RejectedItem[] | null {
  if (!Array.isArray(body?.rejected) || body.rejected.length === 0) return null
  const items = new Map<number, RejectedItem>()
  for (const item of body.rejected as unknown[]) {
    const { index, code, message } = (item ?? {}) as JsonObject
    if (!Number.isInteger(index) || (index as number) < 0 || (index as number) >= calls) return null
    items.set(index as number, { index: index as number, code: line(code), message: line(message) })
  }
  return [...items.values()].sort((a, b) => a.index - b.index)
}

function describe(body: JsonObject | null): string {
  const words = [body?.code, body?.message].map(line).filter((word) => word !== '')
  return words.length === 0 ? '' : ` ${words.join(': ')}`
}

const line = (value: unknown): string =>
  typeof value === 'string' ? value.replace(/[\s\p{Cc}]+/gu, ' ').slice(0, longestMessage) : ''
