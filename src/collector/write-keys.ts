import { setTimeout as sleep } from 'node:timers/promises'
import type { SettingsState, Source } from '../core/settings/settings.ts'

/** The settings, folded live. */
export interface SettingsView {
  readonly state: Pick<SettingsState, 'sources'>
  /** Whether changes come in at once, as far as is known. */
  readonly connected: boolean
  /** Resolves once everything is folded that lay in the log at the time of the call; rejects when it cannot be read. */
  catchUp(signal?: AbortSignal): Promise<void>
}

/** Reading the log's end asks the brokers: senders of unknown keys must not make them busy. */
const catchUpEveryMs = 500
const catchUpWithinMs = 3_000
/** Beyond this many, requests with unknown keys are refused at once. */
const maxWaiting = 100

/** Sources by their write keys, as the settings have them now. */
export class WriteKeys {
  readonly #settings: SettingsView
  #sources: SettingsState['sources'] | null = null
  #byKey = new Map<string, Source>()
  #waiting = 0
  /** The next look at the log's end, which has not begun yet. */
  #next: Promise<void> | null = null
  #lastAt = -Infinity

  constructor(settings: SettingsView) {
    this.#settings = settings
  }

  /** The source of the first key that has one. */
  find(...keys: readonly (string | null)[]): Source | undefined {
    const { sources } = this.#settings.state
    if (sources !== this.#sources) {
      this.#sources = sources
      this.#byKey = new Map([...sources.values()].map((source) => [source.writeKey, source]))
    }
    for (const key of keys) {
      const source = key === null ? undefined : this.#byKey.get(key)
      if (source) return source
    }
    return undefined
  }

  /**
   * As `find`, after the settings' log was read to its end as of now: a key that was just made is known. 'unknown'
   * while that cannot be read, for an SDK does not send again what was refused as unauthorized.
   */
  async findLater(keys: readonly (string | null)[]): Promise<Source | 'none' | 'unknown'> {
    if (this.#waiting >= maxWaiting) return this.#settings.connected ? 'none' : 'unknown'
    this.#waiting++
    try {
      await (this.#next ??= this.#catchUp())
      return this.find(...keys) ?? 'none'
    } catch {
      return 'unknown'
    } finally {
      this.#waiting--
    }
  }

  async #catchUp(): Promise<void> {
    // At least a turn of the event loop, so that `#next` is set before it is taken away.
    await sleep(Math.max(0, this.#lastAt + catchUpEveryMs - performance.now()))
    this.#next = null
    this.#lastAt = performance.now()
    await this.#settings.catchUp(AbortSignal.timeout(catchUpWithinMs))
  }
}
