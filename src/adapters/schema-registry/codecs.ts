import type { Logger } from 'pino'
import type { Config } from '../../config/config.ts'
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { DeadLetter } from '../../core/delivery/delivery.ts'
import type { DeliveryEvent } from '../../core/ledger/delivery-event.ts'
import type { Erasure } from '../../core/erasure/erasures.ts'
import type { Membership } from '../../core/audience/membership.ts'
import type { Suppression } from '../../core/suppression/suppressions.ts'
import type { TopicNames } from '../../core/topics.ts'
import type { SettingsEventFields } from '../folded-log/settings-record.ts'
import { deadLetters, tierRecords } from './delivery-fields.ts'
import type { KeyedTierRecord } from './delivery-fields.ts'
import { RecordCodec } from './record-codec.ts'
import type { Mapping } from './record-codec.ts'
import { RecordReader } from './record-reader.ts'
import { Registry } from './registry.ts'
import { recordSchema } from './schemas.ts'
import type { RecordName } from './schemas.ts'
import { subjectOf } from './subjects.ts'

export interface Codecs {
  calls: RecordCodec<AnalyticsCall>
  /** All tiers share one schema and read each other's records; each writes under its own topic's subject. */
  retries(tierName: string): RecordCodec<KeyedTierRecord>
  deadLetters: RecordCodec<DeadLetter>
  settings: RecordCodec<SettingsEventFields>
  deliveries: RecordCodec<DeliveryEvent>
  memberships: RecordCodec<Membership>
  erasures: RecordCodec<Erasure>
  suppressions: RecordCodec<Suppression>
}

/** The record's fields are the type's own. */
const sameFields: Mapping<never> = { fromFields: (fields) => fields as never }

/**
 * A codec for each topic. Asks the registry for nothing yet: await `ready()` of each codec that is to write.
 */
export function createCodecs(options: {
  registry: Config['registry']
  topics: TopicNames
  log: Logger
  /** How long a request to the registry may take. */
  timeoutMs?: number
  /** A monotonic clock, in ms. */
  now?: () => number
}): Codecs {
  const { topics, log } = options
  const registry = new Registry(options.registry, options.timeoutMs)
  // `setup` registers this one for every deployment.
  const knownSubject = subjectOf(topics.calls)
  const readerOf = (name: RecordName, subjects: () => readonly string[]) =>
    new RecordReader(recordSchema(name), registry, knownSubject, subjects, log, options.now)
  const codec = <T extends object>(
    topic: string,
    name: RecordName,
    mapping: Mapping<T>,
    reader = readerOf(name, () => [subjectOf(topic)]),
  ) => new RecordCodec<T>(subjectOf(topic), recordSchema(name), registry, reader, mapping)

  const retries = new Map<string, RecordCodec<KeyedTierRecord>>()
  const retryReader = readerOf('retryDelivery', () => [...retries.values()].map(({ subject }) => subject))
  return {
    calls: codec<AnalyticsCall>(topics.calls, 'analyticsCall', sameFields),
    retries(tierName) {
      let found = retries.get(tierName)
      if (found === undefined) {
        found = codec(topics.retry(tierName), 'retryDelivery', tierRecords, retryReader)
        retries.set(tierName, found)
      }
      return found
    },
    deadLetters: codec(topics.deadLetters, 'deadLetter', deadLetters),
    settings: codec<SettingsEventFields>(topics.settings, 'settingsEvent', sameFields),
    deliveries: codec<DeliveryEvent>(topics.deliveries, 'deliveryEvent', sameFields),
    memberships: codec<Membership>(topics.memberships, 'membership', sameFields),
    erasures: codec<Erasure>(topics.erasures, 'erasure', sameFields),
    suppressions: codec<Suppression>(topics.suppressions, 'suppression', sameFields),
  }
}
