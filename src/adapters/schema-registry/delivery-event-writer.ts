// The record of what happened to a call: one for each disposition, and with LEDGER=all for each attempt too
// (avro-encoding.ts).
import { deliveryEventTypes } from '../../core/ledger/delivery-event.ts'
import type { DeliveryEvent, PlannedDestination } from '../../core/ledger/delivery-event.ts'
import {
  hasRoom,
  roomForLength,
  roomForNumber,
  roomForSymbol,
  roomForText,
  writeCount,
  writeLong,
  writeNullableDouble,
  writeNullableInt,
  writeNullableLong,
  writeNullableText,
  writeSymbol,
  writeText,
} from './avro-encoding.ts'
import { recordSchema } from './schemas.ts'

/** In the schema's order. */
const typeSymbols: readonly DeliveryEvent['type'][] = ['unknown', ...deliveryEventTypes]

/**
 * Writes the Avro record `DeliveryEvent` at `at` and gives the position behind it; -1 when the buffer may be too short.
 * Throws for what the schema cannot hold: that is a bug.
 */
export function writeDeliveryEvent(event: DeliveryEvent, buffer: Buffer, at: number): number {
  // A tally is written once per commit only: avsc is fast enough.
  if (event.tally !== null) return Math.max(-1, recordSchema('deliveryEvent').type.encode(event, buffer, at))
  if (!hasRoom(buffer, at, roomFor(event))) return -1
  at = writeSymbol(buffer, at, event.type, typeSymbols)
  at = writeLong(buffer, at, event.at)
  at = writeNullableText(buffer, at, event.messageId)
  at = writeNullableText(buffer, at, event.sourceId)
  at = writeNullableText(buffer, at, event.destinationId)
  at = writeNullableText(buffer, at, event.deliveryId)
  at = writeNullableText(buffer, at, event.topic)
  at = writeNullableInt(buffer, at, event.partition)
  at = writeNullableLong(buffer, at, event.firstOffset)
  at = writeNullableLong(buffer, at, event.lastOffset)
  at = writeNullableText(buffer, at, event.disposition)
  at = writeNullableText(buffer, at, event.reason)
  at = writeNullableText(buffer, at, event.detail)
  at = writeNullableText(buffer, at, event.callType)
  at = writeNullableLong(buffer, at, event.receivedAt)
  at = writePlan(buffer, at, event.plan)
  at = writeNullableText(buffer, at, event.urlId)
  at = writeNullableInt(buffer, at, event.attempt)
  at = writeNullableInt(buffer, at, event.status)
  at = writeNullableDouble(buffer, at, event.durationMs)
  at = writeNullableText(buffer, at, event.tier)
  at = writeNullableLong(buffer, at, event.dueAt)
  at = writeNullableLong(buffer, at, event.notBefore)
  at = writeNullableText(buffer, at, event.owner)
  // No tally.
  buffer[at] = 0
  return at + 1
}

function writePlan(buffer: Buffer, at: number, plan: readonly PlannedDestination[]): number {
  at = writeCount(buffer, at, plan)
  for (let index = 0; index < plan.length; index++) {
    const planned = plan[index]!
    at = writeText(buffer, at, planned.destinationId)
    at = writeNullableText(buffer, at, planned.deliveryId)
    at = writeNullableText(buffer, at, planned.reason)
  }
  buffer[at] = 0
  return at + 1
}

function roomFor(event: DeliveryEvent): number {
  const { plan } = event
  let room =
    roomForSymbol +
    10 * roomForNumber +
    roomForText(event.messageId) +
    roomForText(event.sourceId) +
    roomForText(event.destinationId) +
    roomForText(event.deliveryId) +
    roomForText(event.topic) +
    roomForText(event.disposition) +
    roomForText(event.reason) +
    roomForText(event.detail) +
    roomForText(event.callType) +
    roomForLength +
    roomForText(event.urlId) +
    roomForText(event.tier) +
    roomForText(event.owner) +
    1
  for (let index = 0; index < plan.length; index++) {
    const { destinationId, deliveryId, reason } = plan[index]!
    room += roomForText(destinationId) + roomForText(deliveryId) + roomForText(reason)
  }
  return room
}
