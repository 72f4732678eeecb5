import type { TimedSettings } from '../../console/messages/message-facts.ts'
import { SettingsReplay, type SettingsEntry } from '../../core/settings/replay.ts'
import type { Brokers } from '../kafka/link/brokers.ts'
import { readBetween } from '../kafka/read/read-range.ts'
import { leaderRanges } from '../kafka/read/topic-offsets.ts'
import type { TopicRecord } from '../kafka/read/topic-record.ts'
import { entryIn, settingsBetween, type SettingsHistorySource } from './settings-history.ts'

/**
 * The settings of the past for one who asks often: what has been in force since the last change is known from one question
 * to the next. Only about an earlier time is the log read from its beginning.
 */
export class FollowedSettings {
  readonly #source: SettingsHistorySource
  readonly #brokers: Brokers
  #replay = new SettingsReplay()
  /** When the last change was appended; epoch ms by the broker's clock. */
  #since = -Infinity
  /** The first offset that was not read yet. */
  #next = 0
  #catchingUp: Promise<unknown> = Promise.resolve()

  /** @param brokers their owner closes them */
  constructor(source: SettingsHistorySource, brokers: Brokers) {
    this.#source = source
    this.#brokers = brokers
  }

  /** As `settingsBetween`, and with its errors. */
  async between(from: number, to: number, signal?: AbortSignal): Promise<TimedSettings[]> {
    // Where that fails the other way says why.
    const isKnown = await this.#caughtUp(signal).catch(() => false)
    signal?.throwIfAborted()
    if (!isKnown || from < this.#since) return settingsBetween(this.#source, from, to, signal)
    return [{ since: this.#since, state: this.#replay.fold.state }]
  }

  /** One after another: the second one finds read what the first one read. */
  #caughtUp(signal: AbortSignal | undefined): Promise<boolean> {
    const result = this.#catchingUp.then(() => this.#catchUp(signal))
    this.#catchingUp = result.catch(() => {})
    return result
  }

  async #catchUp(signal: AbortSignal | undefined): Promise<boolean> {
    const { codec, ...source } = this.#source
    const [range] = await leaderRanges(this.#brokers, [source.topic])
    if (range!.high < this.#next) this.#startOver()
    if (range!.high === this.#next) return true
    try {
      await readBetween([{ ...range!, low: Math.max(range!.low, this.#next) }], {
        ...source,
        brokers: this.#brokers,
        signal,
        onRecord: (record) => {
          const entry = entryIn(record.value, codec)
          this.#next = record.offset + 1
          if (entry) this.#take(record, entry)
        },
      })
      this.#next = Math.max(this.#next, range!.high)
      return true
    } catch (error) {
      this.#startOver()
      throw error
    }
  }

  #take({ offset, timestamp }: TopicRecord, entry: SettingsEntry): void {
    const { version } = this.#replay.fold
    this.#replay.take({ offset, appendedAt: timestamp, entry })
    if (this.#replay.fold.version !== version) this.#since = Math.max(this.#since, timestamp)
  }

  /** The topic is another one now, or what was read may lack something. */
  #startOver(): void {
    this.#replay = new SettingsReplay()
    this.#since = -Infinity
    this.#next = 0
  }
}
