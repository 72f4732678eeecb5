import {
  SettingsReplay,
  type EntryVerdict,
  type PlacedEntry,
  type SettingsEntry,
} from '../../core/settings/replay.ts'
import type { AcceptedRecord, SettingsFold } from '../../core/settings/fold.ts'
import type { SettingsAggregate, SettingsState } from '../../core/settings/settings.ts'
import { PostriderError, messageOf } from '../../errors.ts'
import type { ChangeAuthor } from '../../operators/settings/writer.ts'
import { IgnoredRecords, type IgnoredCounts } from './ignored-records.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import { aborted } from '../kafka/waiting.ts'
import type { Logger } from '../log.ts'
import { readEntry, type SettingsReader } from './settings-record.ts'

/** What is counted of the settings log. */
export interface SettingsLogCounts extends IgnoredCounts {
  /** It began to hold at an event that this version cannot read, or goes on. */
  settingsHeld(isHeld: boolean): void
}

export interface SettingsFollowerOptions {
  topic: string
  codec: SettingsReader
  log: Logger
  counts?: SettingsLogCounts | undefined
}

const rememberedAuthors = 1_000

/**
 * The settings as the records of their log make them, one after another. What no Postrider writes is reported and
 * ignored. At an event that counts and cannot be read it holds: the settings stay as they were before it, until a newer
 * version reads it or the event is skipped.
 */
export class SettingsFollower {
  readonly #options: SettingsFollowerOptions
  readonly #replay = new SettingsReplay((accepted) => this.#accepted(accepted))
  /** Of the newest changes, by the version before each. */
  readonly #authors = new Map<number, ChangeAuthor>()
  readonly #ignored: IgnoredRecords
  readonly #listeners = new Set<(state: SettingsState) => void>()
  readonly #verdicts = new Map<string, (verdict: EntryVerdict) => void>()
  /** The offset that it holds at, as was reported last. */
  #reportedAt: number | null = null
  #released: PromiseWithResolvers<void> | null = null
  /** Listeners have to be called, which happens once for everything that came in together. */
  #publishing: NodeJS.Immediate | null = null

  constructor(options: SettingsFollowerOptions) {
    this.#options = options
    this.#ignored = new IgnoredRecords(options.log, options.counts)
  }

  get fold(): SettingsFold {
    return this.#replay.fold
  }

  get state(): SettingsAggregate {
    return this.#replay.fold.state
  }

  /** Who made the first change after this version; null where that is not remembered any more, or there was none. */
  authorAfter(version: number): ChangeAuthor | null {
    return this.#authors.get(version) ?? null
  }

  #accepted({ version, appendedAt, record: { actor = '' } }: AcceptedRecord): void {
    this.#authors.set(version, { actor, appendedAt })
    this.#authors.delete(version - rememberedAuthors)
  }

  /** Where it holds, and why; null while everything was folded. */
  get held(): { offset: number; reason: string } | null {
    return this.#replay.held
  }

  /** Says where it holds, and what to do. Only while it does. */
  heldError(): PostriderError {
    const { offset, reason } = this.#replay.held!
    return new PostriderError(
      'setup',
      `${this.#options.topic} holds ${reason}, at offset ${offset}: the settings stay as they were before it. Upgrade, ` +
        `if a newer Postrider wrote it; else \`postrider settings skip ${offset}\` passes over it`,
    )
  }

  /** The listener is called after events were accepted, once for those that came together. Returns how to take it away. */
  onChange(listener: (state: SettingsState) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Resolves to what becomes of a command. `forget` it when it is not awaited any more. */
  verdictOn(commandId: string): Promise<EntryVerdict> {
    return new Promise((resolve) => this.#verdicts.set(commandId, resolve))
  }

  forget(commandId: string): void {
    this.#verdicts.delete(commandId)
  }

  take(taken: TopicRecord): void {
    let entry: SettingsEntry
    try {
      entry = readEntry(taken.value, this.#options.codec)
    } catch (error) {
      return this.#ignored.add(taken, messageOf(error))
    }
    const { offset, timestamp: appendedAt } = taken
    for (const { placed, verdict } of this.#replay.take({ offset, appendedAt, entry }))
      this.#decided(placed, verdict, taken)
    this.#reportHeld()
  }

  #decided({ offset, entry }: PlacedEntry, verdict: EntryVerdict, { topic, partition }: TopicRecord): void {
    if (verdict === 'impossible')
      this.#ignored.add({ topic, partition, offset }, 'it changes something that does not exist')
    if (verdict === 'skipped')
      this.#options.log.warn({ topic, offset }, 'an event of the settings that cannot be read is skipped')
    if (entry.kind === 'event') this.#verdicts.get(entry.record.commandId)?.(verdict)
    if (verdict === 'accepted') this.#publishing ??= setImmediate(() => this.publish())
  }

  #reportHeld(): void {
    const { log, topic, counts } = this.#options
    const offset = this.held?.offset ?? null
    if (offset === this.#reportedAt) return
    if ((offset === null) !== (this.#reportedAt === null)) counts?.settingsHeld(offset !== null)
    this.#reportedAt = offset
    if (offset !== null) {
      log.error({ topic, offset }, this.heldError().message)
      return
    }
    log.info({ topic }, 'the settings are folded on')
    this.#released?.resolve()
    this.#released = null
  }

  /** Resolves once it holds nowhere; throws why it does when the signal aborts. */
  async released(signal: AbortSignal): Promise<void> {
    while (this.#replay.held) {
      if (signal.aborted) throw this.heldError()
      this.#released ??= Promise.withResolvers()
      const stopped = aborted(signal)
      await Promise.race([this.#released.promise, stopped.promise])
      stopped.release()
    }
  }

  /** Calls the listeners, if there is anything that they have not seen. */
  publish(): void {
    if (this.#publishing === null) return
    clearImmediate(this.#publishing)
    this.#publishing = null
    for (const listener of this.#listeners) {
      try {
        listener(this.state)
      } catch (error) {
        this.#options.log.error(
          { topic: this.#options.topic, err: error },
          'a listener to the settings failed',
        )
      }
    }
  }

  /** No listener is called any more. Idempotent. */
  close(): void {
    if (this.#reportedAt !== null) this.#options.counts?.settingsHeld(false)
    this.#reportedAt = null
    this.#listeners.clear()
    if (this.#publishing) clearImmediate(this.#publishing)
    this.#publishing = null
  }
}
