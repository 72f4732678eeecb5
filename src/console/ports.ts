import type { RequestKey } from '../core/settings/command-id.ts'
import type { SecretPlace } from '../core/settings/secret-place.ts'
import type { SettingsCommand } from '../core/settings/commands.ts'
import type { SettingsEvent } from '../core/settings/events.ts'
import type { SealedSecret, SettingsState } from '../core/settings/settings.ts'

/** The settings log: folded, and followed live. */
export interface SettingsWriter {
  readonly state: SettingsState
  /** Resolves once everything is folded that lay in the log at the call. */
  catchUp(signal?: AbortSignal): Promise<void>
  /** Resolves to the state that it led to. Throws SettingsRefused, `conflict`, `kafka_unavailable`. */
  execute(command: SettingsCommand): Promise<SettingsState>
  /** As `execute`, and says what happened. */
  perform(command: SettingsCommand, options?: PerformOptions): Promise<Performed>
}

export interface PerformOptions {
  /** Looks at the state before each decision; what it throws refuses the command. */
  check?: ((state: SettingsState) => void) | undefined
  /**
   * A request that may come again, to any process and at any time: it is done once. Throws RequestKeyReused when
   * its key came with another request.
   */
  request?: RequestKey | null | undefined
}

export interface Performed {
  state: SettingsState
  /** Null when there was nothing to change; of a repeated request, that of the first time. */
  event: SettingsEvent | null
  /** The request had been done before, and nothing was done now. */
  repeated: boolean
}

/** Seals and opens secrets, each for the place where it is used. Errors: `secrets_key`. */
export interface Secrets {
  /** Names of the keys; the first one seals unless another is chosen, all of them open. */
  readonly keyIds: readonly string[]
  fingerprint(text: string, keyId?: string): string
  seal(text: string, place: SecretPlace, keyId?: string): SealedSecret
  open(sealed: SealedSecret, place: SecretPlace): string
  /** Under the first key. Also takes what was sealed for no place. */
  reseal(sealed: SealedSecret, place: SecretPlace): SealedSecret
}
