import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import type { SettingsSource } from './inputs.ts'
import { steadyClock } from '../steady-clock.ts'

const maxBackOffMs = 5_000

/**
 * Catches up with the settings log's end before something is called unknown. One reading of the log serves
 * everything that was fetched before it began.
 */
export class SettingsCatchUp {
  readonly #settings: SettingsSource
  readonly #log: { warn(fields: object, message: string): void }
  readonly #signal: AbortSignal
  /** When the last reading that has ended began, by the steady clock. */
  #caughtUpAt = -Infinity
  #reading: Promise<void> | null = null

  constructor(
    settings: SettingsSource,
    log: { warn(fields: object, message: string): void },
    signal: AbortSignal,
  ) {
    this.#settings = settings
    this.#log = log
    this.#signal = signal
  }

  /** Null when the state covers what was in the log at `time`; else what to wait for before looking again. */
  since(time: number): Promise<void> | null {
    if (this.#caughtUpAt > time) return null
    this.#reading ??= this.#read().finally(() => (this.#reading = null))
    return this.#reading
  }

  async #read(): Promise<void> {
    // Begin in a later millisecond than what was fetched just now.
    await delay(1)
    for (let wait = 100; !this.#signal.aborted; wait = Math.min(wait * 2, maxBackOffMs)) {
      const began = steadyClock.now()
      try {
        await this.#settings.catchUp()
        this.#caughtUpAt = began
        return
      } catch (error) {
        this.#log.warn({ retryInMs: wait }, `records wait for the settings log: ${messageOf(error)}`)
        await delay(wait, undefined, { signal: this.#signal }).catch(() => {})
      }
    }
  }
}
