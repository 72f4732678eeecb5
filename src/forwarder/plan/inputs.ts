// What planning needs from outside: decoders of records, the settings and the erased users.
import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { RetryDelivery } from '../../core/delivery/delivery.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { SuppressibleCall } from '../../core/suppression/suppressions.ts'
import type { SettingsState } from '../../core/settings/settings.ts'

/** Decodes without waiting where it can. */
export interface RecordDecoder<T> {
  /** Undefined when the writer's schema is not known yet: `load` it first. Throws `undecodable`. */
  tryDecode(value: Buffer | null): T | undefined
  /** Throws `registry_unavailable` (try again) or `undecodable` (final). */
  load(value: Buffer): Promise<void>
}

export interface Decoders {
  calls: RecordDecoder<AnalyticsCall>
  /** All tiers share one schema. */
  retries: RecordDecoder<RetryDelivery>
}

/** The settings, live. */
export interface SettingsSource {
  readonly state: SettingsState
  onChange(listener: (state: SettingsState) => void): void
  /** Resolves once everything that lay in the log at the time of the call is folded. */
  catchUp(): Promise<void>
}

/** The users erased by deletion requests, live. */
export interface ErasureSource {
  /** No user was erased. */
  readonly isEmpty: boolean
  covers(call: ErasableCall): boolean
  /** Null when everything is folded that was appended up to a moment ago; otherwise what to wait for before checking again. */
  pending(): Promise<void> | null
}

/** The suppressed users, live. */
export interface SuppressionSource {
  /** No user is suppressed. */
  readonly isEmpty: boolean
  covers(call: SuppressibleCall): boolean
  /** As an ErasureSource's. */
  pending(): Promise<void> | null
}
