import type { Writer } from './facts.ts'
import { usersOf } from '../../core/call/analytics-call.ts'
import { isRun, type CallSpan } from '../../core/delivery/deferred-run.ts'
import { tierOfTopic, type Tier, type TopicNames } from '../../core/topics.ts'
import {
  placeKey,
  traceOfEvent,
  traceOfDeadLetter,
  traceOfRetry,
  traceOfRun,
  type Place,
} from '../../core/ledger/trace.ts'
import { PostriderError } from '../../errors.ts'
import { collectorHeader } from '../../adapters/kafka/write/call-batch-writer.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import { isReport } from '../../adapters/schema-registry/ledger-records.ts'
import { CallShapes } from '../../core/catalogue/call-shape.ts'
import { eventKeyOf } from '../../core/catalogue/event-fold.ts'
import { userKey, type Entry } from './trace-database.ts'

/** Decodes without waiting where it can. */
interface Decoder<T> {
  tryDecode(value: Buffer | null): T | undefined
  load(value: Buffer): Promise<void>
}

type Content = Pick<Entry, 'key' | 'more' | 'trace' | 'tally' | 'call'>
/** Undefined where the record's schema has to be loaded first. */
type Read = (record: TopicRecord, place: Place) => Content | undefined

const nothing: Content = { key: null, more: [], trace: null, tally: null, call: null }

/** What is kept of the records of each topic. */
export class EntryReader {
  readonly #topics: TopicNames
  readonly #codecs: Codecs
  readonly #groups: readonly string[]
  readonly #tiers = new Map<string, Tier | null>()
  readonly #shapes = new CallShapes()

  /** @param groupId of the forwarders; that of the tiers is named after it. Tallies of others are of another deployment */
  constructor(topics: TopicNames, codecs: Codecs, groupId: string) {
    this.#topics = topics
    this.#codecs = codecs
    this.#groups = [groupId, `${groupId}.retries`]
  }

  /** Undefined where it has to be `read`, for its schema is not known yet. */
  tryRead(record: TopicRecord): Entry | undefined {
    const { topic, partition, offset, timestamp } = record
    const place = { topic, partition, offset }
    try {
      const content = this.#readOf(topic)(record, place)
      return content && { place, timestamp, ...content }
    } catch (error) {
      // A record that cannot be read is about no message.
      if (error instanceof PostriderError && error.code === 'undecodable')
        return { place, timestamp, ...nothing }
      throw error
    }
  }

  /** Throws `registry_unavailable`. */
  async read(record: TopicRecord): Promise<Entry> {
    const { topic, partition, offset, timestamp, value } = record
    try {
      await this.#decoderOf(topic).load(value!)
    } catch (error) {
      if (error instanceof PostriderError && error.code === 'undecodable')
        return { place: { topic, partition, offset }, timestamp, ...nothing }
      throw error
    }
    return this.tryRead(record)!
  }

  #readOf(topic: string): Read {
    const { calls, deliveries, deadLetters } = this.#codecs
    switch (topic) {
      case this.#topics.calls:
        return ({ value }) => {
          const call = calls.tryDecode(value)
          if (!call) return undefined
          const { messageId, sourceId } = call
          const seen = { sourceId, event: eventKeyOf(call), shape: this.#shapes.of(call) }
          return { ...nothing, key: messageId, more: usersOf(call).map(userKey), call: seen }
        }
      case this.#topics.deliveries:
        return ({ value }, place) => {
          if (isReport(value)) return nothing
          const event = deliveries.tryDecode(value)
          if (!event) return undefined
          const { tally, topic, partition, at } = event
          if (tally && topic !== null && partition !== null && this.#groups.includes(tally.group))
            return { ...nothing, tally: { topic, partition, tally: { ...tally, at } } }
          const trace = traceOfEvent(event, place)
          // That of a run is found by where the run lies.
          const ofRun = trace?.kind === 'disposition' ? placeKey(trace.of) : null
          return { ...nothing, key: trace && (event.messageId ?? ofRun), trace }
        }
      case this.#topics.deadLetters:
        return ({ value }, place) => {
          const deadLetter = deadLetters.tryDecode(value)
          if (!deadLetter) return undefined
          // A record that never became a delivery is found by where it lay.
          const key = deadLetter.delivery?.messageId ?? placeKey(deadLetter.origin)
          return { ...nothing, key, trace: traceOfDeadLetter(deadLetter, place) }
        }
      default:
        return ({ value }, place) => {
          const tier = this.#tierOf(topic)!
          const retry = this.#codecs.retries(tier.name).tryDecode(value)
          if (!retry) return undefined
          if (isRun(retry)) {
            const [key, ...more] = runKeys(retry.calls)
            return { ...nothing, key: key!, more, trace: traceOfRun(retry, tier, place) }
          }
          return { ...nothing, key: retry.messageId, trace: traceOfRetry(retry, tier, place) }
        }
    }
  }

  #decoderOf(topic: string): Decoder<unknown> {
    const { calls, deliveries, deadLetters } = this.#codecs
    if (topic === this.#topics.calls) return calls
    if (topic === this.#topics.deliveries) return deliveries
    return topic === this.#topics.deadLetters ? deadLetters : this.#codecs.retries(this.#tierOf(topic)!.name)
  }

  #tierOf(topic: string): Tier | null {
    let tier = this.#tiers.get(topic)
    if (tier === undefined) this.#tiers.set(topic, (tier = tierOfTopic(this.#topics, topic)))
    return tier
  }
}

/** In offsets: a run is found by the stretches that its calls lie in. */
const stretch = 4_096

/** Of the runs that a call at this place may be in. */
export const runKeyOf = ({ topic, partition, offset }: Place): string =>
  `\0run\0${topic}/${partition}/${Math.floor(offset / stretch)}`

const runKeys = ({ topic, partition, runs }: CallSpan): string[] => {
  const keys = new Set<string>()
  for (const { start, end } of runs)
    for (let offset = start; offset < end; offset = (Math.floor(offset / stretch) + 1) * stretch)
      keys.add(runKeyOf({ topic, partition, offset }))
  return [...keys]
}

/** A collector marks its records by a header; other writers need not. */
export const writerOf = ({ headers }: Pick<TopicRecord, 'headers'>): Writer =>
  headers[collectorHeader.name]?.toString() === collectorHeader.value ? 'collector' : 'producer'
