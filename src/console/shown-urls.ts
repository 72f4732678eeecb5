import { includesRole, type Role } from '../core/access/roles.ts'
import type { Destination, SettingsAggregate } from '../core/settings/settings.ts'
import type { SettingsWriter } from './settings-writer.ts'

/** White space is no part of a URL that can be set: what a reader exports cannot be applied by mistake. */
const hidden = '[not shown to a reader]'

/**
 * A destination's URL as it is shown to a role. Queries often hold a token of the receiver, which a reader must not have:
 * names are kept, values are not, and what has no name is taken for a value.
 */
export function urlFor(role: Role, url: string): string {
  const end = url.search(/[?#]/)
  if (includesRole(role, 'operator') || end < 0) return url
  const [query, ...fragment] = url.slice(end).split('#')
  const pairs = query!
    .slice(1)
    .split('&')
    .map((pair) => (pair === '' ? '' : pair.replace(/^([^=]*=)?.*$/s, `$1${hidden}`)))
  return (
    url.slice(0, end) +
    (query!.startsWith('?') ? `?${pairs.join('&')}` : '') +
    (fragment.join('#') === '' ? '' : `#${hidden}`)
  )
}

export function destinationFor(role: Role, destination: Destination): Destination {
  const urls = destination.urls.map((each) => ({ ...each, url: urlFor(role, each.url) }))
  return { ...destination, urls }
}

/** The settings that an operation works with for a caller of that role: a reader finds URLs as a reader may see them. */
export const settingsFor = (role: Role, settings: SettingsWriter): SettingsWriter =>
  includesRole(role, 'operator') ? settings : settingsForReaders(settings)

const settingsForReaders = (settings: SettingsWriter): SettingsWriter => ({
  get state() {
    return stateForReaders(settings.state)
  },
  hostRefusal: settings.hostRefusal,
  authorAfter: (version) => settings.authorAfter(version),
  catchUp: (signal) => settings.catchUp(signal),
  execute: (command) => settings.execute(command),
  perform: (command, options) => settings.perform(command, options),
})

/** Of the newest settings: there can be 100,000 destinations, and an operation asks more than once. */
let newest: { of: SettingsAggregate; shown: SettingsAggregate } | null = null

function stateForReaders(state: SettingsAggregate): SettingsAggregate {
  if (newest?.of === state) return newest.shown
  const shown = [...state.destinations].map(([id, each]) => [id, destinationFor('reader', each)] as const)
  newest = { of: state, shown: { ...state, destinations: new Map(shown) } }
  return newest.shown
}
