import type { Kafka } from 'kafkajs'
import type { TimedSettings } from '../../../console/messages/message-facts.ts'
import { SettingsReplay, type SettingsEntry } from '../../../core/settings/replay.ts'
import type { Logger } from '../../log.ts'
import { readEntry, type SettingsReader } from '../../folded-log/settings-record.ts'
import { readRange } from './read-range.ts'

export interface SettingsHistorySource {
  kafka: Kafka
  topic: string
  groupPrefix: string
  log: Logger
  codec: SettingsReader
}

/**
 * The settings that were in force between two times, one after another: first those at `from`. Times are epoch ms by
 * the broker's clock. Reads the log from its beginning; what it led to before `from` is not kept.
 */
export async function settingsBetween(
  { codec, ...source }: SettingsHistorySource,
  from: number,
  to: number,
  signal?: AbortSignal,
): Promise<TimedSettings[]> {
  const replay = new SettingsReplay()
  let since = -Infinity
  const found: TimedSettings[] = []
  for await (const { value, timestamp, offset } of readRange({ ...source, signal })) {
    if (timestamp > to) break
    let entry: SettingsEntry
    try {
      entry = readEntry(value, codec)
    } catch {
      // As every reader does: it is no settings event.
      continue
    }
    const { version } = replay.fold
    // A copy: only of what is asked for.
    const before = timestamp > from ? replay.fold.state : null
    replay.take({ offset, appendedAt: timestamp, entry })
    if (replay.fold.version === version || timestamp <= since) continue
    if (before) found.push({ since, state: before })
    since = timestamp
  }
  found.push({ since, state: replay.fold.state })
  return found
}
