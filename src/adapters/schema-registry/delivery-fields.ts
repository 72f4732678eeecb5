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
import { isRun, pairsOf, runAttempts, spanOf, type DeferredRun } from '../../core/delivery/deferred-run.ts'
import type { LastExchange } from '../../core/delivery/exchange.ts'
import type { OutcomeKind } from '../../core/delivery/outcome.ts'
import type { Filled } from '../../core/shape/text-template.ts'
import { PostriderError } from '../../errors.ts'
import type { Mapping } from './record-codec.ts'

/** The call's Kafka key stands in the record too, for readers of other languages; it may be left out here. */
export type KeyedRetryDelivery = RetryDelivery & { key?: Uint8Array | null }
/** What the tiers hold. */
export type KeyedTierRecord = KeyedRetryDelivery | DeferredRun

type Fields<T, K extends keyof T, Unknown> = Omit<T, K> & Record<K, T[K] | Unknown>
type OutcomeFields = Fields<EndpointOutcome, 'kind', 'unknown'>
type DeliveryFields = Omit<Delivery, 'type' | 'outcomes' | 'filled' | 'lastExchange'> & {
  key: Uint8Array | null
  type: CallType | 'unknown'
  outcomes: readonly OutcomeFields[]
}
interface RunFields {
  urlId: string | null
  offsets: number[]
}
type RetryFields = DeliveryFields &
  Pick<RetryDelivery, 'scheduledAt' | 'owner' | 'from'> &
  AddedFields & { run: RunFields | null }
/** Of a delivery, and of a dead letter as a whole: what later versions added stands at the end of its record. */
interface AddedFields {
  filled: Filled | null
  lastExchange: LastExchange | null
}
type DeadLetterFields = Omit<DeadLetter, 'reason' | 'delivery'> &
  AddedFields & {
    reason: DeadLetterReason | 'unknown'
    delivery: DeliveryFields | null
  }

export const tierRecords: Mapping<KeyedTierRecord> = {
  toFields: (record) =>
    isRun(record) ? fieldsOfRun(record) : { ...record, key: record.key ?? null, run: null },
  // Thousands a second come due while an endpoint is down: what avsc read has the same fields, and is not copied.
  fromFields(read) {
    const fields = read as RetryFields
    if (fields.run !== null) return runOf(fields, fields.run)
    return known(fields) as RetryFields & KeyedRetryDelivery
  },
}

/** What only one delivery has. */
const ofNoDelivery: Omit<RetryFields, keyof DeferredRun | 'origin' | 'run'> = {
  id: '',
  messageId: '',
  sourceId: '',
  userIds: [],
  key: null,
  type: 'unknown',
  body: new Uint8Array(0),
  attempts: runAttempts,
  firstAttemptAt: null,
  notBefore: null,
  outcomes: [],
  lastResponse: null,
  lastExchange: null,
  filled: null,
}

function fieldsOfRun({ urlId, calls, ...shared }: DeferredRun): RetryFields {
  const { start, offsets } = pairsOf(calls)
  const origin = { topic: calls.topic, partition: calls.partition, offset: start, appendedAt: null }
  return { ...ofNoDelivery, ...shared, origin, run: { urlId, offsets } }
}

function runOf(fields: RetryFields, { urlId, offsets }: RunFields): DeferredRun {
  const { destinationId, endpointIds, timesScheduled, firstScheduledAt } = fields
  const { scheduledAt, owner, from, origin } = fields
  const { topic, partition, offset } = origin
  const calls = spanOf(topic, partition, offset, offsets)
  if (calls === null || firstScheduledAt === null)
    throw new PostriderError(
      'undecodable',
      `the deliveries for ${destinationId} name no calls that can be read`,
    )
  const times = { timesScheduled, firstScheduledAt, scheduledAt }
  return { destinationId, urlId, endpointIds, calls, ...times, owner, from }
}

export const deadLetters: Mapping<DeadLetter> = {
  toFields({ delivery, ...record }) {
    const { filled = null, lastExchange = null } = delivery ?? {}
    return { ...record, delivery: delivery && { ...delivery, key: record.rawKey }, filled, lastExchange }
  },
  fromFields(read) {
    const { reason, delivery, filled, lastExchange, ...record } = read as DeadLetterFields
    return {
      ...record,
      reason: reason === 'unknown' ? 'internal_error' : reason,
      delivery: delivery && { ...withoutKey(delivery), filled, lastExchange },
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
