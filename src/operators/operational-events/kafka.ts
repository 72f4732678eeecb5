import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { Kafka } from 'kafkajs'
import { readEntry } from '../../adapters/folded-log/settings-record.ts'
import { withAdmin } from '../../adapters/kafka/admin/with-admin.ts'
import { commitsOf } from '../../adapters/kafka/group/committed-offsets.ts'
import { GroupLease } from '../../adapters/kafka/group/lease.ts'
import { fetchRanges } from '../../adapters/kafka/read/topic-offsets.ts'
import { TopicReader } from '../../adapters/kafka/read/topic-reader.ts'
import type { TopicRecord } from '../../adapters/kafka/read/topic-record.ts'
import type { Logger } from '../../adapters/log.ts'
import type { Codecs } from '../../adapters/schema-registry/codecs.ts'
import { ledgerType } from '../../adapters/schema-registry/ledger-records.ts'
import { readable } from '../../adapters/schema-registry/readable.ts'
import { hasSubscribers } from '../../core/call/built-in-source.ts'
import {
  noState,
  smallerStates,
  type OperationalState,
  type OperationalFold,
} from '../../core/operational/operational-fold.ts'
import { SettingsReplay } from '../../core/settings/replay.ts'
import type { TopicNames } from '../../core/topics.ts'
import { PostriderError } from '../../errors.ts'
import type { EventsLease, OperationalCheckpoint, EventsFlow, EventsReading, ReadTo } from './events.ts'

/** The consumer group that stands for the lease, and whose commits say how far what was read. */
export interface EventsGroup {
  kafka: Kafka
  groupId: string
  topics: [string, ...string[]]
  sessionTimeoutMs: number
  log: Logger
}

/** Throws as `GroupLease.acquire`. */
export async function openEventsLease(group: EventsGroup, signal: AbortSignal): Promise<EventsLease> {
  const { kafka, groupId, sessionTimeoutMs, log } = group
  const [topic, ...committed] = group.topics
  const lease = await GroupLease.acquire({
    kafka,
    groupId,
    topic,
    committed,
    sessionTimeoutMs,
    what: 'operational events',
    busy: 'sending operational events',
    signal,
  })
  const metadataOf = stateMetadata(log)
  return {
    check: () => lease.check(),
    release: () => lease.release(),
    async commit({ positions, state }) {
      const pieces = metadataOf(state, positions.length)
      await lease.commit(positions.map((position, at) => ({ ...position, metadata: pieces[at]! })))
    },
  }
}

/** What was committed last; where there was nothing, the ends of all topics, and no state. */
export function readCheckpoint({ kafka, groupId, topics }: EventsGroup): Promise<OperationalCheckpoint> {
  return withAdmin(kafka, async (admin) => {
    const [commits, ranges] = await Promise.all([
      commitsOf(admin, groupId, [...topics]),
      fetchRanges(kafka, topics),
    ])
    const state = decodeCommitState(commits.map(({ metadata }) => metadata))
    const isNew = commits.every(({ position }) => position === null)
    const positions = ranges.map(({ topic, partition, low, high }) => {
      const commit = commits.find((each) => each.topic === topic && each.partition === partition)
      // A partition that was added since is read from its beginning.
      const offset = isNew ? high : Math.max(low, commit?.position ?? low)
      return { topic, partition, offset }
    })
    // A later version may have left something out, or an earlier one not have had it.
    const kept = state === null ? {} : (JSON.parse(state.text) as Partial<OperationalState>)
    return { positions, state: { ...noState, ...kept } }
  })
}

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
      fold.keep(reader.#settings.fold.state, Date.now())
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
        : type === 'lost' || type === 'heartbeat' || type === 'plan_violations'
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
          this.#fold.setting(placed.entry.record.event, before, Date.now())
    if (!isNew) return
    this.#fold.keep(fold.state, Date.now())
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

/** What a commit may carry as metadata: brokers take 4,096 bytes unless offset.metadata.max.bytes says otherwise. */
const maxMetadataLength = 4_000
const form = /^s1:(\d+):(\d+)\/(\d+):([\w-]*)$/

/**
 * A text as the metadata of a group's commits, in as many pieces as there are partitions. They are committed together,
 * under a number that differs from commit to commit. Null for a text that is too long for them.
 */
export function encodeCommitState(text: string, number: number, partitions: number): string[] | null {
  const encoded = deflateRawSync(text).toString('base64url')
  // The head of a piece is shorter than this.
  const room = maxMetadataLength - 64
  const pieces = Math.max(1, Math.ceil(encoded.length / room))
  if (pieces > partitions) return null
  return Array.from(
    { length: partitions },
    (_, index) => `s1:${number}:${index}/${pieces}:${encoded.slice(index * room, (index + 1) * room)}`,
  )
}

/**
 * States as the metadata of one commit after another: of each as much as fits. That something does not is logged once, until
 * everything fits again.
 */
export function stateMetadata(log: {
  warn(message: string): void
}): (state: OperationalState, partitions: number) => string[] {
  // Of one commit: it only has to differ from the one before.
  let number = Date.now()
  let isWhole = true
  return (state, partitions) => {
    number++
    for (const smaller of smallerStates(state)) {
      const pieces = encodeCommitState(JSON.stringify(smaller), number, partitions)
      if (pieces === null) continue
      if (isWhole && smaller !== state)
        log.warn('not all operational events can be kept for a crash: too much is wrong at once')
      isWhole = smaller === state
      return pieces
    }
    throw new PostriderError('invariant', 'not even an empty state fits into a commit')
  }
}

/** Null where the metadata is of no commit of `encodeCommitState`, or not all of one. */
export function decodeCommitState(
  metadata: readonly (string | null)[],
): { text: string; number: number } | null {
  const found = metadata.map((each) => form.exec(each ?? '')).filter((each) => each !== null)
  const [first] = found
  if (!first) return null
  const pieces = new Map(found.map(([, number, index, , piece]) => [`${number}:${index}`, piece!]))
  const [number, total] = [first[1]!, Number(first[3])]
  let encoded = ''
  for (let index = 0; index < total; index++) {
    const piece = pieces.get(`${number}:${index}`)
    if (piece === undefined) return null
    encoded += piece
  }
  try {
    return { text: inflateRawSync(Buffer.from(encoded, 'base64url')).toString(), number: Number(number) }
  } catch {
    return null
  }
}
