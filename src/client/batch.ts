import { formatTimestamp } from '../core/call/timestamp.ts'
import type { Batch } from './transport.ts'

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
