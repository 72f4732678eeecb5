import { z } from 'zod'
import type { Role } from '../../core/access/roles.ts'
import type { AcceptedRecord } from '../../core/settings/fold.ts'
import { changedSetting, changedSettingSchema } from './changed-setting.ts'

export const historyEntrySchema = z
  .object({
    version: z.number().int().describe('Of the settings, after it.'),
    at: z.iso.datetime().describe('When the log took it, by Kafka’s clock.'),
    actor: z
      .string()
      .nullable()
      .describe(
        'A token’s name, `cli:<user>@<host>`, or `<part>:<host>`. Null for earlier versions’ changes.',
      ),
    type: z.string().describe('Of the event.'),
    changed: z.array(changedSettingSchema).describe('Several where a whole file was applied.'),
  })
  .meta({ id: 'SettingsHistoryEntry' })

export type HistoryEntry = z.output<typeof historyEntrySchema>

export interface HistoryQuery {
  source?: string | undefined
  destination?: string | undefined
  /** Epoch ms. */
  since: number | null
  /** Only those before this version. */
  before: number | null
  limit: number
  /** Of the caller that it is shown to. */
  role: Role
}

/** Reads every change of the settings there was, the oldest first. */
export type ReadChanges = (each: (accepted: AcceptedRecord) => void, signal?: AbortSignal) => Promise<void>

/**
 * Changes of the settings, the newest first. The whole log is read for each page, and no more than a page is kept. `next`
 * is what `before` is for the page behind it.
 */
export async function settingsHistory(
  query: HistoryQuery,
  read: ReadChanges,
  signal?: AbortSignal,
): Promise<{ data: HistoryEntry[]; next: number | null }> {
  const { since, before, limit } = query
  const newest: HistoryEntry[] = []
  await read((accepted) => {
    const version = accepted.version + 1
    if (before !== null && version >= before) return
    if (since !== null && accepted.appendedAt < since) return
    const entry = entryOf(accepted, query)
    if (entry === null) return
    newest.push(entry)
    if (newest.length > limit + 1) newest.shift()
  }, signal)
  newest.reverse()
  const data = newest.slice(0, limit)
  return { data, next: newest.length > limit ? data.at(-1)!.version : null }
}

function entryOf(
  { record, version, appendedAt, touched }: AcceptedRecord,
  { source, destination, role }: HistoryQuery,
): HistoryEntry | null {
  const isAny = source === undefined && destination === undefined
  const changed = touched
    .filter(
      ({ of, id }) =>
        isAny || (of === 'sources' && id === source) || (of === 'destinations' && id === destination),
    )
    .map((setting) => changedSetting(setting, role))
    .filter((found) => found !== null)
  if (changed.length === 0) return null
  return {
    version: version + 1,
    at: new Date(appendedAt).toISOString(),
    actor: record.actor || null,
    type: record.event.type,
    changed,
  }
}
