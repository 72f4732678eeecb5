import type { SettingsEntry } from '../../core/settings/replay.ts'
import { PostriderError } from '../../errors.ts'
import { entryOf } from './settings-record.ts'

/** What reads the bytes of settings events. */
export interface SettingsReader {
  /**
   * The record's fields by our own schema, whatever schema the bytes name; null for bytes that do not begin so. Throws
   * `undecodable` for what is not in the Confluent format.
   */
  readAsOwn(value: Buffer | null): unknown
}

/**
 * What a record of the settings log is. Throws `undecodable` for what no Postrider writes. The bytes alone decide, so
 * that every reader ignores the same records, whatever its registry answers and whether it does: records of every
 * version begin with the fields that this one knows (schemas/settings-event.avsc).
 */
export function readEntry(value: Buffer | null, reader: SettingsReader): SettingsEntry {
  const fields = reader.readAsOwn(value)
  if (fields === null) throw new PostriderError('undecodable', 'its bytes are no settings event')
  return entryOf(fields)
}
