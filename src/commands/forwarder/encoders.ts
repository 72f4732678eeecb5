import { keyAndValueOf, RecordEncoder } from '../../adapters/kafka/wire/record-encoder.ts'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import type { KeyedRetryDelivery } from '../../adapters/schema-registry/retry-delivery-writer.ts'
import type { Config } from '../../config/config.ts'
import type { Encoders } from '../../forwarder/settle/record-sink.ts'

/** Resolves once every record that a forwarder writes can be encoded. */
export async function readyToWrite(codecs: Codecs, config: Config): Promise<void> {
  await Promise.all([
    codecs.calls.ready(),
    codecs.deadLetters.ready(),
    codecs.deliveries.ready(),
    codecs.settings.ready(),
    ...config.retryTiers.map(({ name }) => codecs.retries(name).ready()),
  ])
}

/** Encoders of what a forwarder writes. */
export function encodersOf(codecs: Codecs): Encoders {
  const retries = new Map<string, RecordEncoder<KeyedRetryDelivery>>()
  const deadLetters = new RecordEncoder(codecs.deadLetters)
  const events = new RecordEncoder(codecs.deliveries)
  const retriesOf = (tierName: string) => {
    let encoder = retries.get(tierName)
    if (!encoder) retries.set(tierName, (encoder = new RecordEncoder(codecs.retries(tierName))))
    return encoder
  }
  return {
    retry: (tierName, record, headers) => retriesOf(tierName).encode(record.key, record, headers),
    retryOf(tierName, record) {
      const { key, value } = keyAndValueOf(record)
      // The schema that it was written with is known.
      return { ...codecs.retries(tierName).tryDecode(value)!, key }
    },
    deadLetter: (record, headers) => deadLetters.encode(record.rawKey, record, headers),
    event: (key, event) => events.encode(key, event),
  }
}
