import type { SettingsCommand } from '../core/settings-commands.ts'
import type { SealedSecret, SettingsState } from '../core/settings.ts'

/** The settings log: folded, and followed live. */
export interface Settings {
  readonly state: SettingsState
  /** Resolves once everything is folded that lay in the log at the call. */
  catchUp(): Promise<void>
  /** Resolves to the state that it led to. Throws what says every fault: `usage`, `not_found`, `conflict`. */
  execute(command: SettingsCommand): Promise<SettingsState>
}

/** Seals and opens secrets. Errors: `secrets_key`. */
export interface Secrets {
  /** Names the key that seals; null when there is none. */
  readonly keyId: string | null
  seal(text: string): SealedSecret
  open(sealed: SealedSecret): string
}
