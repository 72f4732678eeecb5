import type { ClientCallType } from './calls.ts'

/**
 * What a client throws, at once and where the mistake is:
 * - `invalid_option`: an option or the write key is wrong; the message names it.
 * - `invalid_call`: a call lacks something or has it in the wrong shape; the message names the field.
 * - `message_too_large`: a call is over 32 KB of JSON.
 * - `queue_full`: the call was not taken, for too much waits to be sent. `await analytics.ready()` waits for room.
 * - `closed`: the call was not taken, for `close()` was called before.
 */
export type AnalyticsErrorCode =
  'invalid_option' | 'invalid_call' | 'message_too_large' | 'queue_full' | 'closed'

export class AnalyticsError extends Error {
  readonly code: AnalyticsErrorCode
  override name = 'AnalyticsError'

  constructor(code: AnalyticsErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.code = code
  }
}

/** A call that was taken and could not be delivered. */
export interface UndeliveredCall {
  messageId: string
  type: ClientCallType
  /** The call as it would have been sent, to keep or to send by other means. */
  json: string
  /** Why, in one line. */
  reason: string
}

/**
 * Why calls that were taken were not delivered:
 * - `rejected`: these calls are not valid to the collector; the others of their batch are not concerned.
 * - `refused`: the collector refuses the whole batch, and would again: an unknown write key (401), a disabled
 *   source, a redirect.
 * - `retries_exhausted`: no good answer within all attempts.
 * - `close_deadline`: `close()` had no more time.
 *
 * Calls of the last two may have arrived all the same, when only the answer was lost.
 */
export type DeliveryErrorCode = 'rejected' | 'refused' | 'retries_exhausted' | 'close_deadline'

export class DeliveryError extends Error {
  readonly code: DeliveryErrorCode
  /** Every call concerned, in the order of the calls. */
  readonly calls: readonly UndeliveredCall[]
  override name = 'DeliveryError'

  constructor(code: DeliveryErrorCode, message: string, calls: readonly UndeliveredCall[]) {
    super(message)
    this.code = code
    this.calls = calls
  }
}
