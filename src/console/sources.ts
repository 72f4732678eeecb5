import { randomBytes } from 'node:crypto'
import type { SettingsState, Source } from '../core/settings/settings.ts'
import { PostriderError } from '../errors.ts'

/** A source as it is shown. Its write key is no secret: browsers publish it. */
export interface SourceView extends Source {
  destinationIds: string[]
}

/** For a source that is made without one. */
export const newWriteKey = (): string => randomBytes(16).toString('hex')

export function sourceView(source: Source, state: Pick<SettingsState, 'destinations'>): SourceView {
  const destinationIds = [...state.destinations.values()]
    .filter(({ sourceIds }) => sourceIds.includes(source.id))
    .map(({ id }) => id)
  return { ...source, destinationIds }
}

/** Throws `not_found`. */
export function sourceIn(state: SettingsState, id: string): Source {
  const source = state.sources.get(id)
  if (!source)
    throw new PostriderError(
      'not_found',
      `source ${JSON.stringify(id)} does not exist; \`postrider sources list\` shows all`,
    )
  return source
}
