import type { AnalyticsCall } from './analytics-call.ts'
import { parseJson } from '../json/parse-json.ts'
import type { SettingsState, Source } from '../settings/settings.ts'

/** Calls of this source are Postrider's own: its operational events. Nobody can create a source of this id. */
export const builtInSourceId = 'postrider'

/**
 * The source of operational events. It is no part of the settings log: it exists in every deployment, cannot be changed
 * or disabled, and has no write key, so that no collector takes calls for it.
 */
export const builtInSource: Source = {
  id: builtInSourceId,
  name: 'Operational events',
  writeKey: '',
  maxRate: null,
  ip: 'keep',
  bots: 'keep',
  plan: null,
  planMode: 'report',
  enabled: true,
}

type Sources = Pick<SettingsState, 'sources' | 'hidesBuiltIn'>

/**
 * Whether the source of this id is the built-in one. A log of an earlier version may hold a source of that id which
 * somebody made: that one stays theirs, and there are no operational events.
 */
export const isBuiltIn = (id: string, { sources }: Sources): boolean =>
  id === builtInSourceId && !sources.has(id)

/** The source of this id, the built-in one too. */
export const sourceOf = (state: Sources, id: string): Source | undefined =>
  state.sources.get(id) ?? (id === builtInSourceId ? builtInSource : undefined)

/** Every source that destinations can subscribe to; the built-in one last. */
export function allSources({ sources, hidesBuiltIn }: Sources): ReadonlyMap<string, Source> {
  if (hidesBuiltIn || sources.has(builtInSourceId)) return sources
  return new Map([...sources, [builtInSourceId, builtInSource]])
}

/** Whether any enabled destination gets operational events: without one, nothing needs to be written. */
export const hasSubscribers = (state: Pick<SettingsState, 'sources' | 'destinations'>): boolean =>
  isBuiltIn(builtInSourceId, state) &&
  [...state.destinations.values()].some(
    ({ enabled, sourceIds }) => enabled && sourceIds.includes(builtInSourceId),
  )

/**
 * The destination that a call of the built-in source is about: it is never planned for that one, which would make an
 * event of each failure to deliver an event. Null where it is about none, and where its properties cannot be read:
 * that call becomes a dead letter.
 */
export function aboutDestination({ properties }: Pick<AnalyticsCall, 'properties'>): string | null {
  if (properties === null) return null
  try {
    const { destination } = parseJson(properties) as { destination?: unknown }
    return typeof destination === 'string' ? destination : null
  } catch {
    return null
  }
}
