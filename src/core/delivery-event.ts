/** What `webhooks.deliveries` tells. `unknown` is a type that a later version added. */
export const deliveryEventTypes = ['lost', 'attempt_failed', 'disposition'] as const
export type DeliveryEventType = (typeof deliveryEventTypes)[number]

/** What happened to a call on its way, or what never could. Times are epoch milliseconds. */
export interface DeliveryEvent {
  type: DeliveryEventType | 'unknown'
  at: number
  messageId: string | null
  sourceId: string | null
  destinationId: string | null
  deliveryId: string | null
  /** Where the record lay. */
  topic: string | null
  partition: number | null
  /** The record's offset; for `lost` the first and the last offset that are gone. */
  firstOffset: number | null
  lastOffset: number | null
  /** delivered, retried, deferred, dead_lettered, skipped or erased. */
  disposition: string | null
  /** A dead letter's reason or an outcome's kind. */
  reason: string | null
  detail: string | null
}
