import type { Kafka } from 'kafkajs'
import type { EventsFlow, EventsReading, ReadTo } from '../../../console/operational/ports.ts'
import { hasSubscribers } from '../../../core/operational/built-in-source.ts'
import type { OperationalFold } from '../../../core/operational/operational-fold.ts'
import { SettingsReplay } from '../../../core/settings/replay.ts'
import type { TopicNames } from '../../../core/topics.ts'
import { readEntry } from '../../folded-log/settings-record.ts'
import { readable } from '../../schema-registry/readable.ts'
import type { Logger } from '../../log.ts'
import type { Codecs } from '../../schema-registry/codecs.ts'
import { ledgerType } from '../../schema-registry/ledger-records.ts'
import { TopicReader } from '../read/topic-reader.ts'
import type { TopicRecord } from '../read/topic-record.ts'

export interface EventsReaderOptions {
  kafka: Kafka
  log: Logger
  topics: TopicNames
  codecs: Codecs
}

const deleteCalls = Buffer.from('delete-')

/** Reads what operational events come from, and keeps how far it got. */
export class EventsReader implements EventsReading {
  readonly ended: Promise<void>
  /** Rejects when one of the readers cannot be started. */
  readonly #failed = Promise.withResolvers<void>()
  readonly #options: EventsReaderOptions
  readonly #fold: OperationalFold
  readonly #flow: EventsFlow
  readonly #positions = new Map<string, ReadTo>()
  readonly #readers: TopicReader[]
  readonly #settings = new SettingsReplay()
  readonly #settingsFrom: number

  private constructor(
    options: EventsReaderOptions,
    from: readonly ReadTo[],
    fold: OperationalFold,
    flow: EventsFlow,
  ) {
    const { topics } = options
    this.#options = options
    this.#fold = fold
    this.#flow = flow
    for (const position of from) this.#positions.set(keyOf(position), { ...position })
    this.#settingsFrom = from.find(({ topic }) => topic === topics.settings)?.offset ?? 0
    // The settings are folded from their beginning; only what is new makes events.
    this.#readers = [
      this.#reader(topics.settings, [], (record) => this.#takeSetting(record)),
      this.#reader(topics.deliveries, from, (record) => this.#takeLedger(record)),
      this.#reader(topics.deadLetters, from, (record) => this.#takeDeadLetter(record)),
    ]
    this.ended = Promise.race([this.#failed.promise, ...this.#readers.map(({ ended }) => ended)])
    this.ended.catch(() => {})
  }

  /** Resolves once it reads; what lies between `from` and now may not be read yet. */
  static async open(
    options: EventsReaderOptions,
    from: readonly ReadTo[],
    fold: OperationalFold,
    flow: EventsFlow,
  ): Promise<EventsReader> {
    const reader = new EventsReader(options, from, fold, flow)
    try {
      const [settings, ...others] = reader.#readers
      await settings!.start()
      fold.keep(reader.#settings.fold.state)
      for (const other of others) other.start().catch(reader.#failed.reject)
      return reader
    } catch (error) {
      await reader.close()
      throw error
    }
  }

  /** An arrow, for it is passed on. */
  readonly positions = (): ReadTo[] => [...this.#positions.values()].map((position) => ({ ...position }))

  isSubscribed(): boolean {
    return hasSubscribers(this.#settings.fold.state)
  }

  async close(): Promise<void> {
    await Promise.all(this.#readers.map((reader) => reader.close()))
  }

  #reader(
    topic: string,
    from: readonly ReadTo[],
    take: (record: TopicRecord) => void | Promise<void>,
  ): TopicReader {
    const { kafka, log } = this.#options
    const its = from.filter((position) => position.topic === topic)
    return new TopicReader({
      kafka,
      topic,
      log,
      from: new Map(its.map(({ partition, offset }) => [partition, offset])),
      onRecord: take,
    })
  }

  async #takeLedger(record: TopicRecord): Promise<void> {
    const { codecs } = this.#options
    const type = ledgerType(record.value)
    // Of dispositions, only those of delete calls: their keys begin so.
    const isOfInterest =
      type === 'disposition'
        ? record.key?.subarray(0, deleteCalls.length).equals(deleteCalls)
        : type === 'lost' || type === 'heartbeat'
    if (!isOfInterest) return this.#passed(record)
    const event = await codecs.deliveries.read(record.value)
    await this.#flow.room()
    if (event) this.#fold.ledger(event, record.timestamp, Date.now())
    this.#passed(record)
  }

  async #takeDeadLetter(record: TopicRecord): Promise<void> {
    const { codecs } = this.#options
    const deadLetter = await codecs.deadLetters.read(record.value)
    if (deadLetter) this.#fold.deadLetter(deadLetter, Date.now())
    this.#passed(record)
  }

  async #takeSetting(record: TopicRecord): Promise<void> {
    const { offset, timestamp: appendedAt, value } = record
    const entry = await readable(() => readEntry(value, this.#options.codecs.settings))
    const isNew = offset >= this.#settingsFrom
    if (isNew) await this.#flow.room()
    const { fold } = this.#settings
    const before = isNew ? fold.state : null
    if (entry)
      for (const { placed, verdict } of this.#settings.take({ offset, appendedAt, entry }))
        if (before && verdict === 'accepted' && placed.entry.kind === 'event')
          this.#fold.setting(placed.entry.record.event, before)
    if (!isNew) return
    this.#fold.keep(fold.state)
    this.#passed(record)
  }

  /** Whatever came of a record, its position moves in the same turn. */
  #passed(record: TopicRecord): void {
    const { topic, partition, offset } = record
    this.#positions.set(keyOf(record), { topic, partition, offset: offset + 1 })
    this.#flow.wake()
  }
}

const keyOf = ({ topic, partition }: Pick<ReadTo, 'topic' | 'partition'>): string => `${topic}/${partition}`
