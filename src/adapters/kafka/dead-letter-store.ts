import type { Kafka } from 'kafkajs'
import type { DeadLetterStore, ReadOptions, StoredLetter } from '../../console/dead-letters/ports.ts'
import type { DeadLetter } from '../../core/delivery.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import type { Logger } from '../log.ts'
import { letterOwner, type RawDecoders } from './letter-owner.ts'
import { newestLetters } from './newest-letters.ts'
import { readRange } from './read-range.ts'
import { fetchRange } from './topic-offsets.ts'
import { TopicReader, type TopicRecord } from './topic-reader.ts'

export interface LetterSource {
  kafka: Kafka
  topic: string
  groupPrefix: string
  log: Logger
  /** Throws `undecodable` for good, or what can be retried. */
  decode(value: Buffer | null): Promise<DeadLetter>
  raw: RawDecoders
}

/** Brokers' clocks, which stamp records, and forwarders', which say when a delivery failed, may differ by this. */
const clockSkewMs = 600_000

const startOf = (since: number | null | undefined): number | undefined =>
  since === null || since === undefined ? undefined : Math.max(0, since - clockSkewMs)

/** The dead letters of a topic. Each call reads the topic anew. */
export function deadLetterStore(source: LetterSource): DeadLetterStore {
  return {
    all: (options = {}) => allLetters(source, options),
    byId: (id, signal) => lettersById(source, id, signal),
    newest: (options) =>
      newestLetters(source, options, startOf(options.since), (record) => readLetter(source, record)),
  }
}

async function* allLetters(source: LetterSource, options: ReadOptions): AsyncGenerator<StoredLetter> {
  const { since, signal, onRange } = options
  const range = readRange({
    ...source,
    since: startOf(since),
    ...(onRange && { onRange }),
    signal,
  })
  for await (const record of range) yield await readLetter(source, record)
}

const positionForm = /^(\d{1,5})-(\d{1,15})$/

async function lettersById(source: LetterSource, id: string, signal?: AbortSignal): Promise<StoredLetter[]> {
  const position = positionForm.exec(id)
  if (position) return [await letterAt(source, Number(position[1]), Number(position[2]), signal)]
  const found: StoredLetter[] = []
  for await (const stored of allLetters(source, { ...(signal && { signal }) })) {
    if (stored.letter?.delivery?.id === id) found.push(stored)
  }
  if (found.length === 0)
    throw new PostriderError(
      'not_found',
      `${source.topic} holds no dead letter of delivery ${id}; \`postrider dead-letters list\` shows what it holds`,
    )
  return found.sort((a, b) => a.failedAt - b.failedAt)
}

async function letterAt(
  source: LetterSource,
  partition: number,
  offset: number,
  signal: AbortSignal | undefined,
): Promise<StoredLetter> {
  const range = (await fetchRange(source.kafka, source.topic)).find((one) => one.partition === partition)
  let record: TopicRecord | undefined
  if (range && offset >= range.low && offset < range.high) {
    const reader = new TopicReader({
      ...source,
      from: new Map([[partition, offset]]),
      until: new Map([[partition, offset + 1]]),
      onRecord: (found) => void (record = found),
    })
    try {
      await reader.start(signal)
    } finally {
      await reader.close()
    }
  }
  if (record) return readLetter(source, record)
  throw new PostriderError(
    'not_found',
    `${source.topic} holds no dead letter ${partition}-${offset}; \`postrider dead-letters list\` shows what it holds`,
  )
}

/** A registry that is away for a moment must not look like a letter that cannot be read. */
const tries = 5
const betweenTriesMs = 500

async function readLetter(source: LetterSource, record: TopicRecord): Promise<StoredLetter> {
  const id = `${record.partition}-${record.offset}`
  for (let tried = 1; ; tried++) {
    try {
      const letter = await source.decode(record.value)
      const owner = await letterOwner(letter, record, source.raw)
      return { id, record, letter, problem: null, failedAt: letter.failedAt, owner }
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      if (!error.canRetry) {
        const owner = await letterOwner(null, record, source.raw)
        return { id, record, letter: null, problem: messageOf(error), failedAt: record.timestamp, owner }
      }
      if (tried === tries) throw error
      await new Promise((resolve) => setTimeout(resolve, betweenTriesMs))
    }
  }
}
