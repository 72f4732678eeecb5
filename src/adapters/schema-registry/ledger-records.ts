import type { types } from 'avsc'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import { headerBytes } from './record-reader.ts'
import { recordSchema } from './schemas.ts'

const { symbols } = (recordSchema('deliveryEvent').type as types.RecordType).field('type')!
  .type as types.EnumType

/**
 * What a record of the ledger records, without decoding it: a ledger holds millions that a reader passes over. `type`
 * is the first field, and its symbols keep their places in every version. Null for what is no record.
 */
export function ledgerType(value: Uint8Array | null): DeliveryEvent['type'] | null {
  if (value === null || value.length <= headerBytes) return null
  // Of a number below 64 the varint is one byte, and a positive one is doubled.
  const byte = value[headerBytes]!
  return ((byte < 128 && symbols[byte >> 1]) || 'unknown') as DeliveryEvent['type']
}

/** A heartbeat, a summary of what came in or of violations, which readers of deliveries pass over. */
export function isReport(value: Uint8Array | null): boolean {
  const type = ledgerType(value)
  return type === 'collected' || type === 'heartbeat' || type === 'plan_violations'
}
