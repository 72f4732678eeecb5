import { requestKeyOf } from './command-id.ts'
import { evolve, type SettingsEvent } from './settings-events.ts'
import { initialSettings, type SettingsAggregate } from './settings.ts'

/** One record of the settings log, as its writer appended it. */
export interface SettingsRecord {
  /** Random, with a request's key behind it (command-id.ts); a producer that appends twice appends the same id twice. */
  commandId: string
  /** The number of events that the writer saw accepted, in the whole log. */
  expectedVersion: number
  /** When it was written, in epoch milliseconds, by the writer's clock. */
  at: number
  event: SettingsEvent
}

/** `stale`: another event was accepted first. `repeated`: this command was seen before. Both are ignored. */
export type Verdict = 'accepted' | 'stale' | 'repeated'

export interface SettingsFold {
  state: SettingsAggregate
  /**
   * Commands that were ignored although their version still lies ahead (a log that lost its end can hold such).
   * Only these need remembering: a repeat of any other is stale by its version, for versions only grow.
   */
  ignoredAhead: ReadonlySet<string>
  /** Requests with a key that were accepted, by the key: whoever repeats one gets the same answer. */
  requests: ReadonlyMap<string, AcceptedRequest>
}

export interface AcceptedRequest {
  /** The digest of what was asked. */
  request: string
  event: SettingsEvent
}

export const initialFold: SettingsFold = {
  state: initialSettings,
  ignoredAhead: new Set(),
  requests: new Map(),
}

/**
 * The one rule by which every reader folds the log: an event counts only if its expected version is the log's
 * version at that point and its command was not there before. So all readers see one state, whatever was
 * appended at the same time or twice.
 */
export function foldRecord(
  fold: SettingsFold,
  record: SettingsRecord,
): { fold: SettingsFold; verdict: Verdict } {
  const { state, ignoredAhead, requests } = fold
  if (ignoredAhead.has(record.commandId)) return { fold, verdict: 'repeated' }
  if (record.expectedVersion > state.version)
    return {
      fold: { ...fold, ignoredAhead: new Set(ignoredAhead).add(record.commandId) },
      verdict: 'stale',
    }
  if (record.expectedVersion < state.version) return { fold, verdict: 'stale' }
  const keyed = requestKeyOf(record.commandId)
  return {
    fold: {
      state: evolve(state, record.event),
      ignoredAhead,
      requests: keyed
        ? new Map(requests).set(keyed.key, { request: keyed.request, event: record.event })
        : requests,
    },
    verdict: 'accepted',
  }
}
