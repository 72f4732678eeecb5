import { randomUUID } from 'node:crypto'
import type { Kafka } from 'kafkajs'
import type { PerformOptions, Performed, Settings } from '../console/ports.ts'
import { RequestKeyReused, SettingsRefused } from '../console/refusals.ts'
import { commandIdOf, type RequestKey } from '../core/command-id.ts'
import type { SettingsCommand } from '../core/settings-commands.ts'
import { decide } from '../core/settings-decide.ts'
import { aggregateOf, type SettingsEvent } from '../core/settings-events.ts'
import { foldRecord, initialFold, type SettingsRecord, type Verdict } from '../core/settings-fold.ts'
import type { SettingsState } from '../core/settings.ts'
import { PostriderError, messageOf } from '../errors.ts'
import { TopicReader, type TopicRecord } from './kafka/topic-reader.ts'
import { within } from './kafka/waiting.ts'
import { KafkaProducer } from './kafka/write/kafka-producer.ts'
import { encodeRecord } from './kafka/write/plain-record.ts'
import { ProduceFailure } from './kafka/write/produce-errors.ts'
import { publishAll } from './kafka/write/publish.ts'
import type { Logger } from './log.ts'
import { fromFields, toFields, type SettingsEventFields } from './settings-record.ts'

/** Settings events to and from bytes. A registry that is away: an error with `canRetry`. */
export interface SettingsCodec {
  /** Awaited before the first `encode`; cheap when repeated. */
  ready(): Promise<void>
  encode(fields: SettingsEventFields): Buffer | Promise<Buffer>
  decode(value: Buffer): Promise<unknown>
}

export interface SettingsLogOptions {
  kafka: Kafka
  topic: string
  /** GROUP_ID: the throw-away reader's group begins with it. */
  groupId: string
  codec: SettingsCodec
  log: Logger
  /** As the topic reader's: short for those who close soon. */
  maxWaitMs?: number
  /** Epoch milliseconds. */
  now?: () => number
}

/** How often a command is decided again because others wrote first, before its caller is told. */
const maxDecisions = 20
const verdictMs = 15_000
/** Longer than leaders take to move. */
const acknowledgeWithinMs = 30_000
/** How long a command under way may hold up closing. */
const closingMs = 3_000

/**
 * The settings, folded from their log and followed live (design.md, Event sourcing). Several writers are safe:
 * a record counts only on the version that its writer had seen.
 */
export class SettingsLog implements Settings {
  readonly #options: SettingsLogOptions
  readonly #reader: TopicReader
  readonly #listeners = new Set<(state: SettingsState) => void>()
  readonly #verdicts = new Map<string, (verdict: Verdict) => void>()
  #fold = initialFold
  #producer: KafkaProducer | null = null
  #lastCommand: Promise<unknown> = Promise.resolve()

  constructor(options: SettingsLogOptions) {
    this.#options = options
    this.#reader = new TopicReader({
      kafka: options.kafka,
      topic: options.topic,
      groupPrefix: `${options.groupId}.settings`,
      log: options.log,
      ...(options.maxWaitMs !== undefined && { maxWaitMs: options.maxWaitMs }),
      onRecord: (record) => this.#take(record),
    })
  }

  get state(): SettingsState {
    return this.#fold.state
  }

  get connected(): boolean {
    return this.#reader.connected
  }

  /** Why it cannot be read now, in one line; null while it can, or no reason is known. */
  get trouble(): string | null {
    return this.#reader.trouble
  }

  get caughtUp(): boolean {
    return this.#reader.caughtUp
  }

  /** Resolves when closed; rejects with `undecodable` when the log holds what this version cannot read. */
  get ended(): Promise<void> {
    return this.#reader.ended
  }

  /**
   * Folds the log to its end as of the call, then follows it. Waits for brokers and registry until the signal
   * aborts, then throws `kafka_unavailable`; `setup` when the topic is missing; `undecodable` as `ended`. Close
   * it even if this throws.
   */
  start(signal?: AbortSignal): Promise<void> {
    return this.#reader.start(signal)
  }

  /** Resolves once everything that lay in the log at the time of the call is folded. */
  catchUp(signal?: AbortSignal): Promise<void> {
    return this.#reader.readToEnd(signal)
  }

  /** The listener is called after each event that was accepted from now on. Returns how to take it away. */
  onChange(listener: (state: SettingsState) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /**
   * Resolves to the state that the command led to. Throws SettingsRefused with every fault; `conflict` when
   * `expectedVersion` has passed; `kafka_unavailable` when the log cannot be written or read on (the change may
   * still have been taken: look before repeating).
   */
  async execute(
    command: SettingsCommand,
    options: { expectedVersion?: number } = {},
  ): Promise<SettingsState> {
    const { expectedVersion } = options
    if (expectedVersion === undefined) return (await this.perform(command)).state
    const check = ({ version }: SettingsState) => {
      if (version === expectedVersion) return
      throw new PostriderError(
        'conflict',
        `the settings were changed meanwhile: they are at version ${version}, not ${expectedVersion}; look at them again`,
      )
    }
    return (await this.perform(command, { check })).state
  }

  /** As `execute`, with what happened. */
  perform(command: SettingsCommand, options: PerformOptions = {}): Promise<Performed> {
    // One at a time: commands of one process would only overtake one another.
    const result = this.#lastCommand.then(() => this.#perform(command, options))
    this.#lastCommand = result.catch(() => {})
    return result
  }

  async #perform(command: SettingsCommand, { check, request = null }: PerformOptions): Promise<Performed> {
    for (let decisions = 0; decisions < maxDecisions; decisions++) {
      const { state, requests } = this.#fold
      const before = request && requests.get(request.key)
      if (before) {
        if (before.request !== request.request) throw new RequestKeyReused()
        return { state, event: before.event, repeated: true }
      }
      check?.(state)
      const decision = decide(command, state)
      if (!decision.accepted) throw new SettingsRefused(decision.faults)
      const { event } = decision
      if (event === null) return { state, event, repeated: false }
      if ((await this.#append(event, state.version, request)) === 'accepted')
        return { state: this.#fold.state, event, repeated: false }
    }
    throw new PostriderError(
      'conflict',
      `other writers changed the settings ${maxDecisions} times in a row first; try again`,
    )
  }

  /** Appends one event and reads on until the log says what became of it. */
  async #append(event: SettingsEvent, expectedVersion: number, request: RequestKey | null): Promise<Verdict> {
    const { codec, kafka, log, topic, now = Date.now } = this.#options
    const commandId = commandIdOf(randomUUID(), request)
    const record: SettingsRecord = { commandId, expectedVersion, at: now(), event }
    await codec.ready()
    const value = await codec.encode(toFields(record))
    const verdict = new Promise<Verdict>((resolve) => this.#verdicts.set(record.commandId, resolve))
    try {
      this.#producer ??= new KafkaProducer(kafka, log)
      // It may be appended twice when an answer is lost: then the second one is ignored.
      await publishAll(this.#producer, topic, [encodeRecord({ key: aggregateOf(event).id, value })], {
        withinMs: acknowledgeWithinMs,
        partition: 0,
      })
      return await within(verdictMs, Promise.race([verdict, this.#failure()]))
    } catch (error) {
      if (error instanceof PostriderError && !(error instanceof ProduceFailure)) throw error
      throw new PostriderError(
        'kafka_unavailable',
        `the change may not have reached ${topic}: ${messageOf(error)}; look at the settings before repeating it`,
        { cause: error },
      )
    } finally {
      this.#verdicts.delete(record.commandId)
    }
  }

  async #failure(): Promise<never> {
    await this.#reader.ended
    throw new Error('the settings log was closed')
  }

  async #take(taken: TopicRecord): Promise<void> {
    const { log, topic } = this.#options
    let record: SettingsRecord
    let verdict: Verdict
    try {
      record = await this.#decode(taken.value)
      const folded = foldRecord(this.#fold, record)
      this.#fold = folded.fold
      verdict = folded.verdict
    } catch (error) {
      if (error instanceof PostriderError && error.canRetry) throw error
      throw new PostriderError(
        'undecodable',
        `${topic} holds a record at offset ${taken.offset} that cannot be read: ${messageOf(error)}. ` +
          'The settings cannot be known without it: upgrade, if a newer Postrider wrote it',
        { cause: error },
      )
    }
    this.#verdicts.get(record.commandId)?.(verdict)
    if (verdict !== 'accepted') return
    for (const listener of this.#listeners) {
      try {
        listener(this.#fold.state)
      } catch (error) {
        log.error({ topic, offset: taken.offset, err: error }, 'a listener to the settings failed')
      }
    }
  }

  async #decode(value: Buffer | null): Promise<SettingsRecord> {
    if (value === null) throw new PostriderError('undecodable', 'it has no value')
    return fromFields(await this.#options.codec.decode(value))
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await within(closingMs, this.#lastCommand).catch(() => {})
    this.#producer?.close()
    this.#producer = null
    await this.#reader.close()
  }
}
