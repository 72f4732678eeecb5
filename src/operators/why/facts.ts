import type { AnalyticsCall } from '../../core/call/analytics-call.ts'
import type { ErasableCall } from '../../core/erasure/erasures.ts'
import type { SettingsState } from '../../core/settings/settings.ts'
import type { Exchange } from '../../core/delivery/exchange.ts'
import type { Finish, Place, Trace } from '../../core/ledger/trace.ts'

/** The writer of a call: a collector, or another producer. */
export type Writer = 'collector' | 'producer'

/** A record of the calls topic. */
export interface FoundCall {
  place: Place
  /** When the broker appended it, epoch ms. */
  appendedAt: number
  writer: Writer
  call: AnalyticsCall
}

/** All that the topics hold of one messageId. */
export interface MessageFacts {
  callsTopic: string
  /** Epoch ms: what brokers got before was not looked through, because the index has a bound; null: all that is kept was. */
  indexedSince: number | null
  /** The newest copies, oldest first; no more than are read. */
  calls: FoundCall[]
  /** Older copies that were left out. */
  omitted: number
  traces: Trace[]
  /** Of the copies' records and of those of tiers that the traces name. */
  finish(place: Place): Finish
  /** The user of a copy that is gone from the calls topic, found in retry tiers or dead letters. */
  ownerOf(place: Place): Promise<ErasableCall | null>
  /**
   * What went out for the deliveries of a copy, and what came back, as their records in retry tiers, dead letters and the
   * ledger keep it; the oldest first.
   */
  attemptsOf(place: Place): Promise<KeptAttempt[]>
}

/** What is kept of one attempt. */
export interface KeptAttempt {
  destinationId: string
  endpointId: string
  /** When its outcome was known, epoch ms. */
  at: number
  outcome: string | null
  /** Null where there was no response. */
  status: number | null
  durationMs: number | null
  detail: string | null
  /** Of the response; null where there was none. */
  body: Uint8Array | null
  /** Null in records of versions that did not keep it. */
  exchange: Exchange | null
}

export interface FactsOptions {
  signal?: AbortSignal | undefined
  /** Called while the index reads new records: records read so far, and how many there are. */
  progress?: ((done: number, total: number) => void) | undefined
}

/** A part of the calls of one user, those that were read last first. */
export interface UserCalls {
  calls: FoundCall[]
  /** As of the facts about a message. */
  indexedSince: number | null
  /** Where the next part begins; null on the last one. */
  next: number | null
}

/** Settings, and since when they were in force: epoch ms, -Infinity for those at the beginning. */
export interface TimedSettings {
  since: number
  state: SettingsState
}

export interface MessagePorts {
  /**
   * Of each message, in their order; of one that nobody knows there is nothing in them. Rejects with `kafka_unavailable`,
   * `registry_unavailable`, `setup`, and `local` for the index's file.
   */
  facts(messageIds: readonly string[], options?: FactsOptions): Promise<MessageFacts[]>
  /** At most `limit` calls of a user that lie before `before` (null: the newest). Rejects as `facts`. */
  callsOfUser(
    userId: string,
    before: number | null,
    limit: number,
    options?: FactsOptions,
  ): Promise<UserCalls>
  /** The settings that were in force between two times (epoch ms), one after another. */
  settingsBetween(from: number, to: number, signal?: AbortSignal): Promise<TimedSettings[]>
  /** Resolves once all deletion requests are known that there are at the call. */
  erasures(signal?: AbortSignal): Promise<{ covers(call: ErasableCall): boolean }>
}
