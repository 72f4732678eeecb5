// Between the deliveries of core and the records `RetryDelivery` and `DeadLetter`. Enums that a later version
// extended are read as their default, `unknown`, which core does not have.
import type { CallType } from '../../core/call/analytics-call.ts'
import type {
  DeadLetter,
  DeadLetterReason,
  Delivery,
  EndpointOutcome,
  RetryDelivery,
} from '../../core/delivery/delivery.ts'
import type { OutcomeKind } from '../../core/delivery/outcome.ts'
import { PostriderError } from '../../errors.ts'
import type { Mapping } from './record-codec.ts'
import { writeRetryDelivery } from './retry-delivery-writer.ts'
import type { KeyedRetryDelivery } from './retry-delivery-writer.ts'

type Fields<T, K extends keyof T, Unknown> = Omit<T, K> & Record<K, T[K] | Unknown>
type OutcomeFields = Fields<EndpointOutcome, 'kind', 'unknown'>
type DeliveryFields = Omit<Delivery, 'type' | 'outcomes'> & {
  key: Uint8Array | null
  type: CallType | 'unknown'
  outcomes: readonly OutcomeFields[]
}
type RetryFields = DeliveryFields & Pick<RetryDelivery, 'scheduledAt' | 'owner' | 'from'>
type DeadLetterFields = Omit<DeadLetter, 'reason' | 'delivery'> & {
  reason: DeadLetterReason | 'unknown'
  delivery: DeliveryFields | null
}

export const retryDeliveries: Mapping<KeyedRetryDelivery> = {
  write: writeRetryDelivery,
  // Thousands a second come due while an endpoint is down: what avsc read has the same fields, and is not copied.
  fromFields: (read) => known(read as RetryFields) as KeyedRetryDelivery,
}

export const deadLetters: Mapping<DeadLetter> = {
  toFields: (record) => ({
    ...record,
    raw: bytes(record.raw),
    rawKey: bytes(record.rawKey),
    delivery: record.delivery && deliveryFields(record.delivery, record.rawKey),
  }),
  fromFields: (read) => {
    const {
      reason,
      detail,
      failedAt,
      origin,
      owner,
      from,
      delivery: nested,
      raw,
      rawKey,
      ...omitted
    } = read as DeadLetterFields
    return {
      reason: reason === 'unknown' ? 'internal_error' : reason,
      detail,
      failedAt,
      origin,
      owner,
      from,
      delivery: nested && delivery(nested),
      raw,
      rawKey,
      omittedBytes: omitted.omittedBytes,
      omittedSha256: omitted.omittedSha256,
    }
  },
}

function deliveryFields(record: Delivery, key: Uint8Array | null): DeliveryFields {
  const { lastResponse } = record
  return {
    id: record.id,
    messageId: record.messageId,
    sourceId: record.sourceId,
    destinationId: record.destinationId,
    userIds: record.userIds,
    key: bytes(key),
    type: record.type,
    body: bytes(record.body),
    endpointIds: record.endpointIds,
    attempts: record.attempts,
    timesScheduled: record.timesScheduled,
    firstAttemptAt: record.firstAttemptAt,
    firstScheduledAt: record.firstScheduledAt,
    notBefore: record.notBefore,
    outcomes: record.outcomes,
    lastResponse: lastResponse && { ...lastResponse, body: bytes(lastResponse.body) },
    origin: record.origin,
  }
}

function delivery(fields: DeliveryFields): Delivery {
  const { key: _key, ...rest } = known(fields)
  return rest
}

/** The same object, with everything that a later version added replaced by values that this one knows. */
function known<T extends DeliveryFields>(fields: T): T & Delivery {
  if (fields.type === 'unknown')
    throw new PostriderError('undecodable', `delivery ${fields.id} is of a type that a later version added`)
  for (const outcome of fields.outcomes) outcome.kind = kindOf(outcome.kind)
  return fields as T & Delivery
}

/** An outcome that this version does not know was retried by the one that wrote it, as a network failure is. */
const kindOf = (kind: OutcomeKind | 'unknown'): OutcomeKind => (kind === 'unknown' ? 'network' : kind)

/** avsc writes Buffers only. Shares the bytes. */
function bytes(given: Uint8Array): Buffer
function bytes(given: Uint8Array | null): Buffer | null
function bytes(given: Uint8Array | null): Buffer | null {
  if (given === null || Buffer.isBuffer(given)) return given
  return Buffer.from(given.buffer, given.byteOffset, given.byteLength)
}
