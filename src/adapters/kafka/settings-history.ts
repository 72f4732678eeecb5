import type { Kafka } from 'kafkajs'
import type { TimedSettings } from '../../console/messages/ports.ts'
import { foldRecord, initialFold } from '../../core/settings-fold.ts'
import { PostriderError } from '../../errors.ts'
import type { Logger } from '../log.ts'
import { fromFields } from '../settings-record.ts'
import { readRange } from './read-range.ts'

export interface SettingsHistorySource {
  kafka: Kafka
  topic: string
  groupPrefix: string
  log: Logger
  codec: { decode(value: Buffer): Promise<unknown> }
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
  let fold = initialFold
  let since = -Infinity
  const found: TimedSettings[] = []
  for await (const { value, timestamp, offset } of readRange({ ...source, signal })) {
    if (value === null)
      throw new PostriderError(
        'undecodable',
        `${source.topic} holds a record without a value at offset ${offset}`,
      )
    if (timestamp > to) break
    const { fold: next, verdict } = foldRecord(fold, fromFields(await codec.decode(value)))
    if (verdict === 'accepted' && timestamp > since) {
      if (timestamp > from) found.push({ since, state: fold.state })
      since = timestamp
    }
    fold = next
  }
  found.push({ since, state: fold.state })
  return found
}
