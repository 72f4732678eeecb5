import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from '../../errors.ts'
import { retryForever } from '../../retry-forever.ts'
import type { Log } from '../log.ts'
import type { SettingsSource } from './planner.ts'
import { steadyClock } from '../steady-clock.ts'

/**
 * Catches up with the settings log's end before something is called unknown. One reading of the log serves
 * everything that was fetched before it began.
 */
export class SettingsCatchUp {
  readonly #settings: SettingsSource
  readonly #log: Pick<Log, 'warn'>
  readonly #signal: AbortSignal
  /** When the last reading that has ended began, by the steady clock. */
  #caughtUpAt = -Infinity
  #reading: Promise<void> | null = null

  constructor(settings: SettingsSource, log: Pick<Log, 'warn'>, signal: AbortSignal) {
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
    const catchUp = async () => {
      const began = steadyClock.now()
      await this.#settings.catchUp()
      this.#caughtUpAt = began
    }
    await retryForever(catchUp, {
      signal: this.#signal,
      onError: (error, retryInMs) =>
        this.#log.warn({ retryInMs }, `records wait for the settings log: ${messageOf(error)}`),
    })
  }
}
