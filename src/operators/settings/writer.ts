import { AsyncLocalStorage } from 'node:async_hooks'
import type { ApplyCommand } from '../../core/apply/wanted-settings.ts'
import type { RequestKey, SettingsCommand } from '../../core/settings/commands.ts'
import type { DeploymentRules } from '../../core/settings/deployment-rules.ts'
import type { SettingsEvent } from '../../core/settings/events.ts'
import { faultsText, leadingCode, type Fault } from '../../core/decision.ts'
import type { SettingsAggregate, SettingsState } from '../../core/settings/settings.ts'
import { PostriderError } from '../../errors.ts'

/** The settings log: folded, and followed live. */
export interface SettingsWriter {
  readonly state: SettingsAggregate
  /** What its decisions go by beside the settings. */
  readonly rules: DeploymentRules
  /** Who made the first change after this version; null where that is not remembered any more, or there was none. */
  authorAfter(version: number): ChangeAuthor | null
  /** Resolves once everything is folded that lay in the log at the call. */
  catchUp(signal?: AbortSignal): Promise<void>
  /** Resolves to the state that it led to. Throws SettingsRefused, `conflict`, `kafka_unavailable`. */
  execute(command: SettingsCommand): Promise<SettingsState>
  /** As `execute`, and says what happened. */
  perform(command: SettingsCommand | ApplyCommand, options?: PerformOptions): Promise<Performed>
}

export interface PerformOptions {
  /** Looks at the state before each decision; what it throws refuses the command. */
  check?: ((state: SettingsState) => void) | undefined
  /**
   * A request that may come again, to any process and at any time: it is done once. Throws RequestKeyReused when
   * its key came with another request.
   */
  request?: RequestKey | null | undefined
  /** The version that the caller has seen. Throws SettingsChangedFirst on any other. */
  expectedVersion?: number | undefined
}

export interface Performed {
  state: SettingsState
  /** Null when there was nothing to change; of a repeated request, that of the first time. */
  event: SettingsEvent | null
  /** The request had been done before, and nothing was done now. */
  repeated: boolean
}

/** A command that was refused: `usage`, `not_found` or `conflict`, with its faults in the message. */
export class SettingsRefused extends PostriderError {
  override name = 'SettingsRefused'
  readonly faults: readonly Fault[]

  constructor(faults: readonly Fault[]) {
    super(leadingCode(faults), faultsText(faults))
    this.faults = faults
  }
}

/** Who changed the settings, and when: epoch ms by the log's clock. `actor` is empty where that is not known. */
export interface ChangeAuthor {
  actor: string
  appendedAt: number
}

/** The version that a caller has seen has passed. `first` is null where it is not remembered any more. */
export class SettingsChangedFirst extends PostriderError {
  override name = 'SettingsChangedFirst'

  constructor(version: number, first: ChangeAuthor | null) {
    const who = first?.actor ? first.actor : 'somebody'
    const when = first ? ` at ${new Date(first.appendedAt).toISOString()}` : ''
    super(
      'conflict',
      `${who} changed the settings first${when} (they are at version ${version} now), and nothing was changed here: ` +
        'look at the difference again',
    )
  }
}

/** An Idempotency-Key came with another request before. */
export class RequestKeyReused extends PostriderError {
  override name = 'RequestKeyReused'

  constructor() {
    super('conflict', 'this Idempotency-Key came with another request before: a new request needs a new key')
  }
}

const actors = new AsyncLocalStorage<string>()

/**
 * Whatever changes the settings during this work has this actor in their history, however deep down it is done: one that
 * would have to be handed on could be forgotten.
 */
export const actingAs = <T>(actor: string, work: () => T): T => actors.run(actor, work)

export const currentActor = (): string | undefined => actors.getStore()
