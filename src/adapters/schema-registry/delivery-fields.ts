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

/** The call's Kafka key stands in the record too, for readers of other languages; it may be left out here. */
export type KeyedRetryDelivery = RetryDelivery & { key?: Uint8Array | null }

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
  toFields: (record) => (record.key === undefined ? { ...record, key: null } : record),
  // Thousands a second come due while an endpoint is down: what avsc read has the same fields, and is not copied.
  fromFields: (read) => known(read as RetryFields) as KeyedRetryDelivery,
}

export const deadLetters: Mapping<DeadLetter> = {
  toFields({ delivery, ...record }) {
    return { ...record, delivery: delivery && { ...delivery, key: record.rawKey } }
  },
  fromFields(read) {
    const { reason, delivery, ...record } = read as DeadLetterFields
    return {
      ...record,
      reason: reason === 'unknown' ? 'internal_error' : reason,
      delivery: delivery && withoutKey(delivery),
    }
  },
}

function withoutKey(fields: DeliveryFields): Delivery {
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
