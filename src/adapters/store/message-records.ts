// Reads the records that the index of messages names.
import type { Kafka } from 'kafkajs'
import type { FoundCall } from '../../console/messages/message-facts.ts'
import { usersOf } from '../../core/call/analytics-call.ts'
import { erasableDelivery } from '../../core/erasure/erasable.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import { placeKey, type Place, type Trace } from '../../core/ledger/trace.ts'
import { tierOfTopic, type TopicNames } from '../../core/topics.ts'
import { PostriderError } from '../../errors.ts'
import type { Brokers } from '../kafka/link/brokers.ts'
import { readPlaces } from '../kafka/read/read-places.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import type { Logger } from '../log.ts'
import type { Codecs } from '../schema-registry/codecs.ts'
import { writerOf } from './entry-reader.ts'

/** Copies of one messageId that are read, the newest. */
export const maxCopies = 20

export interface MessageRecordsOptions {
  kafka: Kafka
  /** Their owner closes them. */
  brokers: Brokers
  topics: TopicNames
  /** Of the forwarders; that of the tiers is named after it. */
  groupId: string
  codecs: Codecs
  log: Logger
}

export class MessageRecords {
  readonly #options: MessageRecordsOptions

  constructor(options: MessageRecordsOptions) {
    this.#options = options
  }

  /** The newest copies of the call, oldest first. */
  async callsAt(
    places: readonly Place[],
    messageId: string,
    signal: AbortSignal | undefined,
  ): Promise<FoundCall[]> {
    const found = await this.#callsIn(newestPlaces(places), signal)
    return found.filter(({ call }) => call.messageId === messageId)
  }

  /** Oldest first. */
  async callsOfUser(
    places: readonly Place[],
    userId: string,
    signal: AbortSignal | undefined,
  ): Promise<FoundCall[]> {
    const found = await this.#callsIn(places, signal)
    return found.filter(({ call }) => usersOf(call).includes(userId))
  }

  async #callsIn(places: readonly Place[], signal: AbortSignal | undefined): Promise<FoundCall[]> {
    const { codecs } = this.#options
    const found: FoundCall[] = []
    for (const record of await this.#recordsAt(places, signal)) {
      const call = await codecs.calls.decode(record.value)
      const { topic, partition, offset, timestamp } = record
      found.push({
        place: { topic, partition, offset },
        appendedAt: timestamp,
        writer: writerOf(record),
        call,
      })
    }
    return found.sort((a, b) => a.appendedAt - b.appendedAt || a.place.offset - b.place.offset)
  }

  #recordsAt(places: readonly Place[], signal: AbortSignal | undefined): Promise<TopicRecord[]> {
    const { kafka, brokers, log } = this.#options
    return readPlaces({ kafka, brokers, log }, places, signal)
  }

  /** By the newest record of a tier or dead letter that came from the copy and is still there. */
  async ownerOf(
    place: Place,
    traces: readonly Trace[],
    signal: AbortSignal | undefined,
  ): Promise<ErasableCall | null> {
    const { topics, codecs } = this.#options
    const its = traces.filter(
      (trace) =>
        (trace.kind === 'retry' || trace.kind === 'dead_letter') &&
        placeKey(trace.origin) === placeKey(place),
    )
    for (const record of await this.#recordsAt(its.map((trace) => trace.place).slice(-maxCopies), signal)) {
      const key = record.key && record.key.toString('utf8')
      const tier = tierOfTopic(topics, record.topic)
      try {
        if (tier) {
          const retry = await codecs.retries(tier.name).decode(record.value)
          return erasableDelivery(retry, key, retry.scheduledAt)
        }
        const { delivery, failedAt } = await codecs.deadLetters.decode(record.value)
        if (delivery) return erasableDelivery(delivery, key, failedAt)
      } catch (error) {
        if (!(error instanceof PostriderError) || error.canRetry) throw error
      }
    }
    return null
  }
}

/** Of one partition those with the highest offsets; how partitions compare is not known before they are read. */
function newestPlaces(places: readonly Place[]): Place[] {
  return places.length <= maxCopies
    ? [...places]
    : places.toSorted((a, b) => b.offset - a.offset).slice(0, maxCopies)
}
