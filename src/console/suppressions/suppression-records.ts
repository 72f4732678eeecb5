import type { Suppression } from '../../core/suppression/suppressions.ts'
import type { SettingsState } from '../../core/settings/settings.ts'

/** The suppressed users, as far as they are folded. */
export interface KnownSuppressions {
  /** Whether there is a suppression of just this source, or of every one. */
  has(sourceId: string, userId: string): boolean
  /** Whether the record at this offset is what is in force of the user. */
  isNewest(sourceId: string, userId: string, offset: number): boolean
}

/** A record of `webhooks.suppressions` that begins a suppression. */
export interface StoredSuppression {
  sourceId: string
  userId: string
  offset: number
  /** When the broker appended it, epoch milliseconds. */
  appendedAt: number
}

/** Begins a suppression, or ends the one of this source and user. */
export type SuppressionChange =
  { begins: true; suppression: Suppression } | { begins: false; sourceId: string; userId: string }

/** All reject with `kafka_unavailable`, `registry_unavailable` or `setup`. */
export interface SuppressionPorts {
  settings: { readonly state: SettingsState; catchUp(): Promise<void> }
  /** Resolves once everything is folded that lay in the topic at the call. */
  known(signal?: AbortSignal): Promise<KnownSuppressions>
  /** Resolves once all of them are acknowledged by all replicas. */
  write(changes: readonly SuppressionChange[]): Promise<void>
  /** What begins a suppression, from this offset on, in the order in which it was written. */
  read(from: number, signal?: AbortSignal): AsyncIterable<StoredSuppression>
  /** Epoch milliseconds. */
  now(): number
}
