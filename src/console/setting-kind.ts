import type { z } from 'zod'
import type { SettingsState } from '../core/settings/settings.ts'
import { PostriderError } from '../errors.ts'

/** What views need to know beside the settings. */
export interface ShownFacts {
  /** For how long what a pause holds is kept, in ms; null without a limit, or where it is not known. */
  heldKeptMs: number | null
}

/** One kind of setting, for commands and admin API alike: `T` is one of it, `V` how it is shown. */
export interface SettingKind<T extends { id: string }, V> {
  /** For people: `source`. */
  one: string
  /** Of what is shown. */
  schema: z.ZodType<V>
  /** In the order of their creation. */
  all(state: SettingsState): ReadonlyMap<string, T>
  /** Whether lists have it; unless given they have all. */
  isListed?(item: T): boolean
  view(item: T, state: SettingsState, facts?: ShownFacts): V
}

/** Throws `not_found`. */
export function settingIn<T extends { id: string }>(
  { one, all }: Pick<SettingKind<T, unknown>, 'one' | 'all'>,
  state: SettingsState,
  id: string,
): T {
  const found = all(state).get(id)
  if (found) return found
  throw new PostriderError(
    'not_found',
    `${one} ${JSON.stringify(id)} does not exist; \`postrider ${one}s list\` shows all`,
  )
}
