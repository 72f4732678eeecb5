import { formatTimestamp } from '../core/timestamp.ts'

/** What is sent in one piece: calls as JSON texts, in their order, at most 500 KB with what goes around them. */
export interface Batch {
  items: readonly string[]
  /** Epoch milliseconds, by this machine's clock: of this attempt, not of the first. */
  sentAt: number
}

/** One call of a batch, by its place from 0, that is not valid. */
export interface RejectedItem {
  index: number
  code: string
  message: string
}

export type SendResult =
  /** Everything but the rejected is safe. */
  | { kind: 'accepted'; rejected: readonly RejectedItem[] }
  /** These are not valid; the others are to be sent again without them. */
  | { kind: 'rejected'; rejected: readonly RejectedItem[] }
  /** The whole batch, and trying again would not help. */
  | { kind: 'refused'; message: string }
  /** Try again, not before `retryAfterMs` if there is one. The batch may have arrived all the same. */
  | { kind: 'unavailable'; message: string; retryAfterMs: number | null }

/** Where batches go. One at a time is sent. */
export interface Transport {
  /** For people, without anything secret. */
  readonly name: string
  /**
   * Resolves in bounded time. What it rejects with counts as `unavailable`. Once the signal is aborted, only a result
   * of the same turn of the event loop counts: `unavailable`, with what it was waiting for.
   */
  send(batch: Batch, signal: AbortSignal): Promise<SendResult>
  /** Leaves no handle open. Called once, after the last send. */
  close(): Promise<void>
}

/** 500 KB: of the whole request body, in bytes of UTF-8 as they are sent. */
export const maxBatchBytes = 500 * 1_024

/** A `timestamp` is one that the caller chose: the collector is not to correct it by the clock (`timeOf`). */
const opening = '{"exactTimestamps":true,"batch":['
const closing = (sentAt: number): string => `],"sentAt":"${formatTimestamp(sentAt)}"}`

/** What the body has around its calls; between two calls there is one byte more. */
export const envelopeBytes = opening.length + closing(0).length

/** The body of `POST /v1/batch`. */
export function batchBody({ items, sentAt }: Batch): string {
  return opening + items.join(',') + closing(sentAt)
}
