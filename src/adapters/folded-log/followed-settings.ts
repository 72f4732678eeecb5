import type { TimedSettings } from '../../operators/why/facts.ts'
import { SettingsReplay, type SettingsEntry } from '../../core/settings/replay.ts'
import type { Brokers } from '../kafka/link/brokers.ts'
import { readBetween } from '../kafka/read/read-range.ts'
import { topicRanges } from '../kafka/read/topic-offsets.ts'
import { TopicView } from '../store/topic-view.ts'
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
  /** Of the records that were read. */
  #newest = 0
  readonly #view: TopicView

  /** @param brokers their owner closes them */
  constructor(source: SettingsHistorySource, brokers: Brokers) {
    this.#source = source
    this.#brokers = brokers
    this.#view = new TopicView({
      name: 'what was read of the settings',
      file: null,
      kafka: source.kafka,
      brokers,
      log: source.log,
      positions: () =>
        this.#next === 0
          ? []
          : [{ topic: source.topic, partition: 0, next: this.#next, newest: this.#newest }],
      clear: () => this.#startOver(),
    })
  }

  /** As `settingsBetween`, and with its errors. */
  async between(from: number, to: number, signal?: AbortSignal): Promise<TimedSettings[]> {
    // Where that fails the other way says why.
    const isKnown = await this.#view.inTurn(() => this.#catchUp(signal)).catch(() => false)
    signal?.throwIfAborted()
    if (!isKnown || from < this.#since) return settingsBetween(this.#source, from, to, signal)
    return [{ since: this.#since, state: this.#replay.fold.state }]
  }

  async #catchUp(signal: AbortSignal | undefined): Promise<boolean> {
    const { codec, ...source } = this.#source
    const found = await this.#view.ranges(
      [source.topic],
      (...asked) => topicRanges(this.#brokers, ...asked),
      signal,
    )
    const ranges = this.#view.unread(found)
    try {
      await readBetween(ranges, {
        ...source,
        brokers: this.#brokers,
        signal,
        onRecord: (record) => {
          const entry = entryIn(record.value, codec)
          this.#newest = Math.max(this.#newest, record.timestamp)
          this.#next = record.offset + 1
          if (entry) this.#take(record, entry)
        },
      })
      this.#next = Math.max(this.#next, ranges[0]!.high)
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
    this.#newest = 0
  }
}
