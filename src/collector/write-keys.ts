import type { SettingsState, Source } from '../core/settings/settings.ts'
import { LookAgain } from '../look-again.ts'

/** The settings, folded live. */
export interface SettingsView {
  readonly state: Pick<SettingsState, 'sources'>
  /** Whether changes come in at once, as far as is known. */
  readonly connected: boolean
  /** Resolves once everything is folded that lay in the log at the time of the call; rejects when it cannot be read. */
  catchUp(signal?: AbortSignal): Promise<void>
}

/** Sources by their write keys, as the settings have them now. */
export class WriteKeys {
  readonly #settings: SettingsView
  #sources: SettingsState['sources'] | null = null
  #byKey = new Map<string, Source>()
  readonly #again: LookAgain

  constructor(settings: SettingsView) {
    this.#settings = settings
    this.#again = new LookAgain((signal) => settings.catchUp(signal))
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
    try {
      if (!(await this.#again.look())) return this.#settings.connected ? 'none' : 'unknown'
      return this.find(...keys) ?? 'none'
    } catch {
      return 'unknown'
    }
  }
}
