import { messageOf } from '../errors.ts'
import { pause } from '../retry-forever.ts'
import { backoffMs } from './backoff.ts'
import type { BackoffPolicy } from './backoff.ts'
import type { Debug } from './debug.ts'
import { DeliveryError } from './errors.ts'
import type { DeliveryErrorCode, UndeliveredCall } from './errors.ts'
import type { RejectedItem, SendResult, Transport } from './transport.ts'
import type { WrittenCall } from './write-call.ts'

export interface BatchOutcome {
  /** For the calls that were given up, each in one of them at most. */
  failures: DeliveryError[]
  /** Why the last attempt failed; null when it succeeded. */
  lastFault: string | null
}

/**
 * Sends one batch until each of its calls is delivered or given up, under the same messageIds each time. Never
 * rejects. Gives up at once when the signal aborts, and says why it could not send before: `lastFault` is that of the
 * batch before.
 */
export async function deliverBatch(
  batch: readonly WrittenCall[],
  by: {
    transport: Transport
    policy: BackoffPolicy
    debug: Debug | null
    signal: AbortSignal
    lastFault: string | null
  },
): Promise<BatchOutcome> {
  const { transport, policy, debug, signal } = by
  const failures: DeliveryError[] = []
  let { lastFault } = by
  const givenUp = (code: DeliveryErrorCode, message: string) => {
    const reason = `${message} (${transport.name})`
    failures.push(
      new DeliveryError(code, `${counted(left.length)} not delivered: ${reason}`, all(left, reason)),
    )
    return { failures, lastFault }
  }
  const nameRejected = (rejected: readonly RejectedItem[]): number => {
    const items = new Map(rejected.map((item) => [item.index, item]))
    const named = left.filter((_call, index) => items.has(index))
    if (named.length > 0) failures.push(rejection(left, items))
    left = left.filter((_call, index) => !items.has(index))
    return named.length
  }
  let left = batch
  let retries = 0
  for (;;) {
    if (signal.aborted) return givenUp('close_deadline', closedBefore('they could be sent', lastFault))
    const result = await attempt(left, transport, signal)
    if (result === null) return givenUp('close_deadline', closedBefore('an answer came', lastFault))
    debug?.(`${counted(left.length)} to ${transport.name}: ${describe(result)}`)
    lastFault = 'message' in result ? result.message : null
    switch (result.kind) {
      case 'accepted':
        nameRejected(result.rejected)
        return { failures, lastFault }
      case 'rejected':
        if (nameRejected(result.rejected) === 0) return givenUp('refused', 'rejected, no call being named')
        if (left.length === 0) return { failures, lastFault }
        continue
      case 'refused':
        return givenUp('refused', result.message)
      case 'unavailable': {
        if (signal.aborted) continue
        if (++retries > policy.retries)
          return givenUp('retries_exhausted', `${result.message}, at the last of ${retries} attempts`)
        const waitMs = backoffMs(policy, retries, result.retryAfterMs, Math.random())
        debug?.(`again in ${Math.round(waitMs)} ms`)
        await pause(waitMs, signal)
      }
    }
  }
}

const closedBefore = (event: string, lastFault: string | null): string =>
  lastFault === null ? `the client closed before ${event}` : `the client closed; last attempt: ${lastFault}`

/**
 * One attempt; null when the signal aborts before its result is there. A transport that ends at the signal has one turn
 * of the event loop to say what it was waiting for. Never rejects, whatever the transport does.
 */
function attempt(
  calls: readonly WrittenCall[],
  transport: Transport,
  signal: AbortSignal,
): Promise<SendResult | null> {
  return new Promise((resolve) => {
    const settle = (result: SendResult | null) => {
      signal.removeEventListener('abort', onAbort)
      resolve(result)
    }
    const onAbort = () => setImmediate(() => settle(null))
    signal.addEventListener('abort', onAbort)
    const items = calls.map(({ json }) => json)
    const sending = async () => checked(await transport.send({ items, sentAt: Date.now() }, signal))
    sending().then(settle, (error: unknown) =>
      settle({ kind: 'unavailable', message: messageOf(error), retryAfterMs: null }),
    )
  })
}

function checked(result: SendResult): SendResult {
  switch (result.kind) {
    case 'accepted':
    case 'rejected':
      if (Array.isArray(result.rejected)) return result
      break
    case 'refused':
    case 'unavailable':
      return result
  }
  throw new Error('the transport gave no result')
}

function rejection(
  calls: readonly WrittenCall[],
  rejected: ReadonlyMap<number, RejectedItem>,
): DeliveryError {
  const named = calls.flatMap((call, index) => {
    const item = rejected.get(index)
    return item ? [undelivered(call, [item.code, item.message].filter(Boolean).join(': '))] : []
  })
  const others = named.length > 1 ? ', and others' : ''
  return new DeliveryError(
    'rejected',
    `${counted(named.length)} rejected: ${named[0]!.reason}${others}`,
    named,
  )
}

const all = (calls: readonly WrittenCall[], reason: string): UndeliveredCall[] =>
  calls.map((call) => undelivered(call, reason))

const undelivered = ({ messageId, type, json }: WrittenCall, reason: string): UndeliveredCall => ({
  messageId,
  type,
  json,
  reason,
})

function describe(result: SendResult): string {
  switch (result.kind) {
    case 'accepted':
      return result.rejected.length === 0 ? 'accepted' : `accepted but for ${result.rejected.length}`
    case 'rejected':
      return `${result.rejected.length} of them rejected, the others once more`
    default:
      return `${result.kind}: ${result.message}`
  }
}

const counted = (calls: number): string => (calls === 1 ? '1 call' : `${calls} calls`)
