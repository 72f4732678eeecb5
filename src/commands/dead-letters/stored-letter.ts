import type { Kafka } from 'kafkajs'
import { readRange } from '../../adapters/kafka/read-range.ts'
import { fetchRange } from '../../adapters/kafka/topic-offsets.ts'
import { TopicReader } from '../../adapters/kafka/topic-reader.ts'
import type { TopicRecord } from '../../adapters/kafka/topic-reader.ts'
import type { Logger } from '../../adapters/log.ts'
import type { DeadLetter } from '../../core/delivery.ts'
import { PostriderError, messageOf } from '../../errors.ts'

/** A record of the dead letter topic. */
export interface StoredLetter {
  /** `<partition>-<offset>`: stable, and there for every record, a delivery's or not. */
  id: string
  record: TopicRecord
  /** Null when the record itself cannot be read. */
  letter: DeadLetter | null
  /** Why it cannot be read. */
  problem: string | null
  /** Epoch milliseconds; when it was written, where that is all that is known. */
  failedAt: number
}

export interface LetterSource {
  kafka: Kafka
  topic: string
  groupPrefix: string
  log: Logger
  /** Throws `undecodable` for good, or what can be retried. */
  decode(value: Buffer | null): Promise<DeadLetter>
}

/** Brokers' clocks, which stamp records, and forwarders', which say when a delivery failed, may differ by this. */
const clockSkewMs = 600_000

/** Every dead letter there is now, in order within a partition. */
export async function* allLetters(
  source: LetterSource,
  options: { since?: number | null; signal?: AbortSignal; onRange?: (total: number) => void },
): AsyncGenerator<StoredLetter> {
  const { since, signal, onRange } = options
  const range = readRange({
    ...source,
    ...(since === null || since === undefined ? {} : { since: Math.max(0, since - clockSkewMs) }),
    ...(onRange && { onRange }),
    signal,
  })
  for await (const record of range) yield await read(source, record)
}

const positionForm = /^(\d{1,5})-(\d{1,15})$/

/**
 * The dead letters of that id, oldest first: one for a `<partition>-<offset>`; for a delivery id all that the
 * delivery ever came to. Throws `not_found`.
 */
export async function lettersById(
  source: LetterSource,
  id: string,
  signal?: AbortSignal,
): Promise<StoredLetter[]> {
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
  if (record) return read(source, record)
  throw new PostriderError(
    'not_found',
    `${source.topic} holds no dead letter ${partition}-${offset}; \`postrider dead-letters list\` shows what it holds`,
  )
}

/** A registry that is away for a moment must not look like a letter that cannot be read. */
const tries = 5
const betweenTriesMs = 500

async function read(source: LetterSource, record: TopicRecord): Promise<StoredLetter> {
  const id = `${record.partition}-${record.offset}`
  for (let tried = 1; ; tried++) {
    try {
      const letter = await source.decode(record.value)
      return { id, record, letter, problem: null, failedAt: letter.failedAt }
    } catch (error) {
      if (!(error instanceof PostriderError)) throw error
      if (!error.canRetry)
        return { id, record, letter: null, problem: messageOf(error), failedAt: record.timestamp }
      if (tried === tries) throw error
      await new Promise((resolve) => setTimeout(resolve, betweenTriesMs))
    }
  }
}
