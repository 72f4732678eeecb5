import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { SettingsState, Source } from '../core/settings/settings.ts'
import type { SettingKind } from './setting-kind.ts'

/** A source as it is shown. */
const sourceSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    writeKey: z.string().describe('What senders show to the collector. No secret: browsers publish it.'),
    enabled: z.boolean(),
    destinationIds: z.array(z.string()).describe('Where its calls go.'),
  })
  .meta({ id: 'Source' })

export type SourceView = z.output<typeof sourceSchema>

/** For a source that is made without one. */
export const newWriteKey = (): string => randomBytes(16).toString('hex')

function sourceView(source: Source, state: Pick<SettingsState, 'destinations'>): SourceView {
  const destinationIds = [...state.destinations.values()]
    .filter(({ sourceIds }) => sourceIds.includes(source.id))
    .map(({ id }) => id)
  return { ...source, destinationIds }
}

export const sourceKind = {
  one: 'source',
  schema: sourceSchema,
  all: ({ sources }) => sources,
  view: sourceView,
} as const satisfies SettingKind<Source, SourceView>
