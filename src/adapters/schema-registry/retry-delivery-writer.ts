// The record of a delivery that is scheduled for a retry: thousands a second while an endpoint is down
// (avro-encoding.ts).
import { callTypes } from '../../core/call/analytics-call.ts'
import type { EndpointOutcome, LastResponse, Origin, RetryDelivery } from '../../core/delivery/delivery.ts'
import { outcomeKinds } from '../../core/delivery/outcome.ts'
import {
  hasRoom,
  roomForBytes,
  roomForLength,
  roomForNumber,
  roomForSymbol,
  roomForText,
  roomForTexts,
  writeBytes,
  writeCount,
  writeDouble,
  writeInt,
  writeLong,
  writeNullableBytes,
  writeNullableInt,
  writeNullableLong,
  writeNullableText,
  writeSymbol,
  writeText,
  writeTexts,
} from './avro-encoding.ts'

/** The call's Kafka key stands in the record too, for readers of other languages; it may be left out here. */
export type KeyedRetryDelivery = RetryDelivery & { key?: Uint8Array | null }

/** In the schema's order. */
const typeSymbols: readonly string[] = ['unknown', ...callTypes]
const kindSymbols: readonly string[] = ['unknown', ...outcomeKinds]

/**
 * Writes the Avro record `RetryDelivery` at `at` and gives the position behind it; -1 when the buffer may be too short.
 * Throws for what the schema cannot hold: that is a bug.
 */
export function writeRetryDelivery(record: KeyedRetryDelivery, buffer: Buffer, at: number): number {
  const key = record.key ?? null
  if (!hasRoom(buffer, at, roomFor(record, key))) return -1
  at = writeText(buffer, at, record.id)
  at = writeText(buffer, at, record.messageId)
  at = writeText(buffer, at, record.sourceId)
  at = writeText(buffer, at, record.destinationId)
  at = writeTexts(buffer, at, record.userIds)
  at = writeNullableBytes(buffer, at, key)
  at = writeSymbol(buffer, at, record.type, typeSymbols)
  at = writeBytes(buffer, at, record.body)
  at = writeTexts(buffer, at, record.endpointIds)
  at = writeInt(buffer, at, record.attempts)
  at = writeInt(buffer, at, record.timesScheduled)
  at = writeNullableLong(buffer, at, record.firstAttemptAt)
  at = writeNullableLong(buffer, at, record.firstScheduledAt)
  at = writeNullableLong(buffer, at, record.notBefore)
  at = writeOutcomes(buffer, at, record.outcomes)
  at = writeLastResponse(buffer, at, record.lastResponse)
  at = writeOrigin(buffer, at, record.origin)
  at = writeLong(buffer, at, record.scheduledAt)
  at = writeText(buffer, at, record.owner)
  if (record.from === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at] = 2
  return writeOrigin(buffer, at + 1, record.from)
}

function writeOutcomes(buffer: Buffer, at: number, outcomes: readonly EndpointOutcome[]): number {
  at = writeCount(buffer, at, outcomes)
  for (let index = 0; index < outcomes.length; index++) {
    const outcome = outcomes[index]!
    at = writeText(buffer, at, outcome.endpointId)
    at = writeSymbol(buffer, at, outcome.kind, kindSymbols)
    at = writeNullableInt(buffer, at, outcome.status)
    at = writeDouble(buffer, at, outcome.durationMs)
    at = writeLong(buffer, at, outcome.at)
    at = writeNullableText(buffer, at, outcome.detail)
  }
  buffer[at] = 0
  return at + 1
}

function writeLastResponse(buffer: Buffer, at: number, response: LastResponse | null): number {
  if (response === null) {
    buffer[at] = 0
    return at + 1
  }
  buffer[at++] = 2
  at = writeText(buffer, at, response.endpointId)
  at = writeInt(buffer, at, response.status)
  at = writeBytes(buffer, at, response.body)
  at = writeDouble(buffer, at, response.durationMs)
  return writeLong(buffer, at, response.at)
}

function writeOrigin(buffer: Buffer, at: number, origin: Origin): number {
  at = writeText(buffer, at, origin.topic)
  at = writeInt(buffer, at, origin.partition)
  at = writeLong(buffer, at, origin.offset)
  return writeNullableLong(buffer, at, origin.appendedAt)
}

function roomFor(record: RetryDelivery, key: Uint8Array | null): number {
  const { outcomes, lastResponse, origin, from } = record
  let room =
    roomForText(record.id) +
    roomForText(record.messageId) +
    roomForText(record.sourceId) +
    roomForText(record.destinationId) +
    roomForTexts(record.userIds) +
    roomForBytes(key) +
    roomForSymbol +
    roomForBytes(record.body) +
    roomForTexts(record.endpointIds) +
    6 * roomForNumber +
    roomForText(record.owner) +
    roomForOrigin(origin)
  room += from === null ? 1 : 1 + roomForOrigin(from)
  room += lastResponse === null ? 1 : 1 + roomForResponse(lastResponse)
  room += roomForLength + outcomes.length * (roomForSymbol + 3 * roomForNumber)
  for (let index = 0; index < outcomes.length; index++) {
    const { endpointId, detail } = outcomes[index]!
    room += roomForText(endpointId) + roomForText(detail)
  }
  return room
}

const roomForResponse = ({ endpointId, body }: LastResponse): number =>
  roomForText(endpointId) + roomForBytes(body) + 3 * roomForNumber

const roomForOrigin = ({ topic }: Origin): number => roomForText(topic) + 3 * roomForNumber
