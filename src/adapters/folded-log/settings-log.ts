import { randomUUID } from 'node:crypto'
import { decideAny } from '../../core/apply/apply-rules.ts'
import type { ApplyCommand } from '../../core/apply/wanted-settings.ts'
import { noRules, type DeploymentRules } from '../../core/settings/deployment-rules.ts'
import { commandIdOf, type RequestKey, type SettingsCommand } from '../../core/settings/commands.ts'
import { aggregateOf, type SettingsEvent } from '../../core/settings/events.ts'
import type { EntryVerdict } from '../../core/settings/replay.ts'
import type { SettingsAggregate, SettingsState } from '../../core/settings/settings.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import {
  type ChangeAuthor,
  type PerformOptions,
  type Performed,
  type SettingsWriter,
  RequestKeyReused,
  SettingsChangedFirst,
  SettingsRefused,
} from '../../operators/settings/writer.ts'
import { KafkaProducer } from '../kafka/producer/kafka-producer.ts'
import { encodeRecord } from '../kafka/producer/plain-record.ts'
import { ProduceFailure } from '../kafka/producer/partition-write.ts'
import { publishAll } from '../kafka/producer/publish.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import { within } from '../kafka/waiting.ts'
import { FoldedLog, type FoldedLogOptions } from './folded-log.ts'
import { SettingsFollower, type SettingsLogCounts } from './settings-follower.ts'
import {
  readEntry,
  skipFields,
  toFields,
  type SettingsEventFields,
  type SettingsReader,
} from './settings-record.ts'

/** Settings events to and from bytes. A registry that is away: an error with `canRetry`. */
export interface SettingsCodec extends SettingsReader {
  /** Awaited before the first `encode`; cheap when repeated. */
  ready(): Promise<void>
  encode(fields: SettingsEventFields): Buffer | Promise<Buffer>
}

/**
 * What a start does where the log holds at an event that this version cannot read: wait until it is skipped, fail with
 * `setup`, or look at what there is before it.
 */
export type WhenHeld = 'wait' | 'fail' | 'look'

export interface SettingsLogOptions extends FoldedLogOptions {
  codec: SettingsCodec
  counts?: SettingsLogCounts
  /** Epoch milliseconds. */
  now?: () => number
  /** Who does what is done now, for the history. */
  actor?: (() => string) | undefined
  /** What this process's environment allows; without it, everything. */
  rules?: DeploymentRules
}

/** How often a command is decided again because others wrote first, before its caller gets a conflict. */
const maxDecisions = 20
const verdictMs = 15_000
/** How long a refusal waits for what lies in the log already, in ms: while brokers are away what is known decides. */
const catchUpMs = 2_000
/** A broker takes records of 1 MB unless it is set otherwise; so much is for what stands around one. */
const maxEventBytes = 1_000_000
/** How long a running command may hold up closing. */
const closingMs = 3_000

/**
 * The settings, folded from their log and followed live (docs/architecture.md). Several writers are safe:
 * a record counts only on the version that its writer had seen.
 *
 * What no Postrider writes is reported and ignored. At an event that counts and cannot be read the log holds: the
 * settings stay as they were before it and nothing can change them, until a newer version runs or the event is skipped.
 */
export class SettingsLog extends FoldedLog implements SettingsWriter {
  readonly rules: DeploymentRules
  readonly #options: SettingsLogOptions
  readonly #follower: SettingsFollower
  readonly #closing = new AbortController()
  #producer: KafkaProducer | null = null
  #lastCommand: Promise<unknown> = Promise.resolve()

  constructor(options: SettingsLogOptions) {
    super(options)
    this.rules = options.rules ?? noRules
    this.#options = options
    this.#follower = new SettingsFollower(options)
  }

  protected take(record: TopicRecord): void {
    this.#follower.take(record)
  }

  get state(): SettingsAggregate {
    return this.#follower.state
  }

  authorAfter(version: number): ChangeAuthor | null {
    return this.#follower.authorAfter(version)
  }

  /** Why these are not the settings as they are now, in one line; null while they are. */
  get problem(): string | null {
    if (this.#follower.held) return this.#follower.heldError().message
    if (this.connected) return null
    const { trouble } = this
    return `the settings log cannot be read${trouble === null ? '' : `: ${trouble}`}`
  }

  /** Where the log holds at an event that this version cannot read; null elsewhere. */
  get heldAt(): number | null {
    return this.#follower.held?.offset ?? null
  }

  /**
   * Folds the log to its end as of the call, then follows it. Waits for brokers until the signal aborts, then throws
   * `kafka_unavailable`; `setup` when the topic is missing. Close it even if this throws.
   */
  async start(signal?: AbortSignal, whenHeld: WhenHeld = 'wait'): Promise<void> {
    await this.reader.start(signal)
    if (whenHeld === 'fail' && this.#follower.held) throw this.#follower.heldError()
    if (whenHeld === 'wait')
      await this.#follower.released(
        signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal,
      )
    this.#follower.publish()
  }

  /** Resolves once everything that lay in the log at the time of the call is folded. Throws `setup` where it holds. */
  async catchUp(signal?: AbortSignal): Promise<void> {
    await this.reader.readToEnd(signal)
    this.#follower.publish()
    if (this.#follower.held) throw this.#follower.heldError()
  }

  /**
   * The listener is called after events were accepted from now on, once for those that came together. Returns how to
   * take it away.
   */
  onChange(listener: (state: SettingsState) => void): () => void {
    return this.#follower.onChange(listener)
  }

  /**
   * Passes over the event that the log holds at, for every reader that cannot read it. Throws `conflict` when the log
   * does not hold there, and `kafka_unavailable`.
   */
  async skip(offset: number): Promise<void> {
    const { codec, topic, now = Date.now, actor } = this.#options
    const { held } = this.#follower
    if (held?.offset !== offset)
      throw new PostriderError(
        'conflict',
        held
          ? `the settings are not held up by the record at offset ${offset}, but by the one at offset ${held.offset}: ${held.reason}`
          : `the settings are not held up: every record of ${topic} was read, or is no settings event and is ignored`,
      )
    await codec.ready()
    const value = await codec.encode(skipFields(randomUUID(), now(), offset, actor?.()))
    await this.#publishRecord('settings', value)
    await this.reader.readToEnd(AbortSignal.timeout(verdictMs))
    this.#follower.publish()
  }

  /**
   * Resolves to the state that the command led to. Throws SettingsRefused with every fault; `kafka_unavailable` when
   * the log cannot be written or read on (the change may still have been taken: look before repeating).
   */
  async execute(command: SettingsCommand): Promise<SettingsState> {
    return (await this.perform(command)).state
  }

  /** As `execute`, with what happened. */
  perform(command: SettingsCommand | ApplyCommand, options: PerformOptions = {}): Promise<Performed> {
    const actor = this.#options.actor?.() ?? ''
    // One at a time: commands of one process would only overtake one another.
    const result = this.#lastCommand.then(() => this.#perform(command, options, actor))
    this.#lastCommand = result.catch(() => {})
    return result
  }

  async #perform(
    command: SettingsCommand | ApplyCommand,
    options: PerformOptions,
    actor: string,
  ): Promise<Performed> {
    const { now = Date.now } = this.#options
    const { request = null } = options
    let isCurrent = false
    for (let decisions = 0; decisions < maxDecisions; decisions++) {
      if (this.#follower.held) throw this.#follower.heldError()
      const { fold } = this.#follower
      const { state } = fold
      const before = request && fold.request(request.key, now())
      if (before) {
        if (before.request !== request.request) throw new RequestKeyReused()
        return { state, event: before.event, repeated: true }
      }
      let event: SettingsEvent | null = null
      let refusal: unknown = null
      try {
        event = this.#decide(command, state, options)
      } catch (error) {
        refusal = error
      }
      if (event === null && !isCurrent) {
        // Nothing is appended, which would show what another process has changed just before.
        isCurrent = true
        if (await this.#readOn()) continue
      }
      if (refusal !== null) throw refusal as Error
      if (event === null) return { state, event, repeated: false }
      if ((await this.#append(event, state.version, request, actor)) !== 'accepted') continue
      this.#follower.publish()
      return { state: this.state, event, repeated: false }
    }
    throw new PostriderError(
      'conflict',
      `other writers changed the settings ${maxDecisions} times in a row first; try again`,
    )
  }

  /** The event that the command leads to; null where nothing changes. Throws why it is refused. */
  #decide(
    command: SettingsCommand | ApplyCommand,
    state: SettingsAggregate,
    { check, expectedVersion }: PerformOptions,
  ): SettingsEvent | null {
    if (expectedVersion !== undefined && expectedVersion !== state.version)
      throw new SettingsChangedFirst(state.version, this.authorAfter(expectedVersion))
    check?.(state)
    const decision = decideAny(command, state, this.rules)
    if (!decision.accepted) throw new SettingsRefused(decision.faults)
    return decision.event
  }

  /** Whether there was anything to read. */
  async #readOn(): Promise<boolean> {
    const before = this.#follower.fold.state.version
    await this.reader.readToEnd(AbortSignal.timeout(catchUpMs)).catch(() => {})
    this.#follower.publish()
    return this.#follower.held !== null || this.#follower.fold.state.version !== before
  }

  /** Appends one event and reads on until the log says what became of it. */
  async #append(
    event: SettingsEvent,
    expectedVersion: number,
    request: RequestKey | null,
    actor: string,
  ): Promise<EntryVerdict> {
    const { codec, topic, now = Date.now } = this.#options
    const commandId = commandIdOf(randomUUID(), request)
    await codec.ready()
    const value = await codec.encode(toFields({ commandId, expectedVersion, at: now(), event, actor }))
    // Once it is in the log, nothing can change any more. The rules should not let it come to this.
    const entry = readEntry(value, codec)
    if (entry.kind === 'unreadable') throw new Error(`the change would be ${entry.reason}`)
    if (value.length > maxEventBytes)
      throw new PostriderError(
        'usage',
        `the change is ${value.length} bytes long, and one event of the settings has at most ${maxEventBytes}: make it in parts`,
      )
    const verdict = this.#follower.verdictOn(commandId)
    try {
      await this.#publishRecord(aggregateOf(event).id, value)
      return await within(verdictMs, Promise.race([verdict, this.#failure()]))
    } catch (error) {
      if (error instanceof PostriderError && !(error instanceof ProduceFailure)) throw error
      throw new PostriderError(
        'kafka_unavailable',
        `the change may not have reached ${topic}: ${messageOf(error)}; look at the settings before repeating it`,
        { cause: error },
      )
    } finally {
      this.#follower.forget(commandId)
    }
  }

  /** It may be appended twice when an answer is lost: then the second one is ignored. */
  async #publishRecord(key: string, value: Buffer): Promise<void> {
    const { kafka, log, topic } = this.#options
    this.#producer ??= new KafkaProducer(kafka, log)
    await publishAll(this.#producer, topic, [encodeRecord({ key, value })], { partition: 0 })
  }

  async #failure(): Promise<never> {
    await this.ended
    throw new Error('the settings log was closed')
  }

  /** Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort()
    await within(closingMs, this.#lastCommand).catch(() => {})
    this.#producer?.close()
    this.#producer = null
    await this.reader.close()
    this.#follower.close()
  }
}
