import { setTimeout as delay } from 'node:timers/promises'
import type { Kafka } from 'kafkajs'
import {
  deadLetterPlace,
  noDeadLetter,
  type DeadLetterReadOptions,
  type DeadLetterStore,
  type StoredDeadLetter,
} from '../../../console/dead-letters/dead-letter-store.ts'
import type { DeadLetter } from '../../../core/delivery/delivery.ts'
import { PostriderError, messageOf } from '../../../errors.ts'
import type { Logger } from '../../log.ts'
import { deadLetterOwner, type RawDecoders } from './dead-letter-owner.ts'
import { newestDeadLetters } from './newest-dead-letters.ts'
import { readBetween, readRange } from './read-range.ts'
import { fetchRange } from './topic-offsets.ts'
import type { TopicRecord } from './topic-record.ts'

export interface DeadLetterSource {
  kafka: Kafka
  topic: string
  log: Logger
  /** Throws `undecodable` for good, or what can be retried. */
  decode(value: Buffer | null): Promise<DeadLetter>
  raw: RawDecoders
}

/** Brokers' clocks, which stamp records, and forwarders', which say when a delivery failed, may differ by this. */
const clockSkewMs = 600_000

const startOf = (since: number | null | undefined): number | undefined =>
  since === null || since === undefined ? undefined : Math.max(0, since - clockSkewMs)

/** The dead letters of a topic. Each call reads the topic again. */
export function deadLetterStore(source: DeadLetterSource): DeadLetterStore {
  return {
    all: (options = {}) => allDeadLetters(source, options),
    byId: (id, signal) => deadLettersById(source, id, signal),
    newest: (options) =>
      newestDeadLetters(source, options, startOf(options.since), (record) => readDeadLetter(source, record)),
  }
}

async function* allDeadLetters(
  source: DeadLetterSource,
  options: DeadLetterReadOptions,
): AsyncGenerator<StoredDeadLetter> {
  const range = readRange({ ...source, ...options, since: startOf(options.since) })
  for await (const record of range) yield await readDeadLetter(source, record)
}

async function deadLettersById(
  source: DeadLetterSource,
  id: string,
  signal?: AbortSignal,
): Promise<StoredDeadLetter[]> {
  const place = deadLetterPlace(id)
  if (place) return [await deadLetterAt(source, place.partition, place.offset, signal)]
  const found: StoredDeadLetter[] = []
  for await (const stored of allDeadLetters(source, { ...(signal && { signal }) })) {
    if (stored.deadLetter?.delivery?.id === id) found.push(stored)
  }
  if (found.length === 0) throw noDeadLetter(source.topic, `of delivery ${id}`)
  return found.sort((a, b) => a.failedAt - b.failedAt)
}

async function deadLetterAt(
  source: DeadLetterSource,
  partition: number,
  offset: number,
  signal: AbortSignal | undefined,
): Promise<StoredDeadLetter> {
  const range = (await fetchRange(source.kafka, source.topic)).find((one) => one.partition === partition)
  let record: TopicRecord | undefined
  if (range && offset >= range.low && offset < range.high)
    await readBetween([{ partition, low: offset, high: offset + 1 }], {
      ...source,
      signal,
      onRecord: (found) => void (record = found),
    })
  if (record) return readDeadLetter(source, record)
  throw noDeadLetter(source.topic, `${partition}-${offset}`)
}

/** A registry that is away for a moment must not look like a dead letter that cannot be read. */
const tries = 5
const betweenTriesMs = 500

export async function readDeadLetter(
  source: DeadLetterSource,
  record: TopicRecord,
): Promise<StoredDeadLetter> {
  const id = `${record.partition}-${record.offset}`
  for (let tried = 1; ; tried++) {
    try {
      const deadLetter = await source.decode(record.value)
      const owner = await deadLetterOwner(deadLetter, record, source.raw)
      return { id, record, deadLetter, problem: null, failedAt: deadLetter.failedAt, owner }
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      if (!error.canRetry) {
        const owner = await deadLetterOwner(null, record, source.raw)
        return { id, record, deadLetter: null, problem: messageOf(error), failedAt: record.timestamp, owner }
      }
      if (tried === tries) throw error
      await delay(betweenTriesMs)
    }
  }
}
