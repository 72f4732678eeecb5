import type { Kafka } from 'kafkajs'
import type { TimedSettings } from '../../operators/why/facts.ts'
import type { AcceptedRecord } from '../../core/settings/fold.ts'
import { SettingsReplay, type SettingsEntry } from '../../core/settings/replay.ts'
import type { Logger } from '../log.ts'
import { readEntry, type SettingsReader } from './settings-record.ts'
import { readRange } from '../kafka/read/read-range.ts'

export interface SettingsHistorySource {
  kafka: Kafka
  topic: string
  log: Logger
  codec: SettingsReader
}

/**
 * The settings that were in force between two times, one after another: first those at `from`. Times are epoch ms by
 * the broker's clock. Reads the log from its beginning; what it led to before `from` is not kept.
 */
export async function settingsBetween(
  source: SettingsHistorySource,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<TimedSettings[]> {
  const found: TimedSettings[] = []
  for await (const settings of eachSettings(source, from, to, signal)) found.push(settings)
  return found
}

/** As `settingsBetween`, for callers that keep little of each. */
export async function* eachSettings(
  { codec, ...source }: SettingsHistorySource,
  from: number,
  to: number,
  signal?: AbortSignal,
): AsyncGenerator<TimedSettings, void, void> {
  const replay = new SettingsReplay()
  let since = -Infinity
  for await (const { value, timestamp, offset } of readRange({ ...source, signal })) {
    if (timestamp > to) break
    const entry = entryIn(value, codec)
    if (entry === null) continue
    const { version } = replay.fold
    // A copy: only of what is asked for.
    const before = timestamp > from ? replay.fold.state : null
    replay.take({ offset, appendedAt: timestamp, entry })
    if (replay.fold.version === version || timestamp <= since) continue
    if (before) yield { since, state: before }
    since = timestamp
  }
  yield { since, state: replay.fold.state }
}

/** Every change of the settings that counts, the oldest first. Reads the log from its beginning, and keeps none. */
export async function readChanges(
  { codec, ...source }: SettingsHistorySource,
  each: (accepted: AcceptedRecord) => void,
  signal?: AbortSignal,
): Promise<void> {
  const replay = new SettingsReplay(each)
  for await (const { value, timestamp: appendedAt, offset } of readRange({ ...source, signal })) {
    const entry = entryIn(value, codec)
    if (entry) replay.take({ offset, appendedAt, entry })
  }
}

/** Null for what is no settings event, as every reader does it. */
export function entryIn(value: Buffer | null, codec: SettingsReader): SettingsEntry | null {
  try {
    return readEntry(value, codec)
  } catch {
    return null
  }
}
