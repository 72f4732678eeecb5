import type { ComponentType } from 'preact'
import type { PageName } from '../../console/page-paths.ts'
import type { PageProps } from './page-props.ts'

type Page = ComponentType<PageProps>

/** Each page by its name in `page-paths.ts`, loaded when it is first gone to. Pages do not know each other. */
export const pages: Record<Exclude<PageName, 'login'>, () => Promise<Page>> = {
  overview: () => import('./overview/overview.tsx').then(({ Overview }) => Overview),
  begin: () => import('./begin/begin.tsx').then(({ Begin }) => Begin),
  destinations: () => import('./destinations/destinations.tsx').then(({ Destinations }) => Destinations),
  newDestination: () =>
    import('./destination/new-destination.tsx').then(({ NewDestination }) => NewDestination),
  destination: () => import('./destination/destination.tsx').then(({ Destination }) => Destination),
  find: () => import('./find/find.tsx').then(({ FindCall }) => FindCall),
  deadLetters: () => import('./dead-letters/dead-letters.tsx').then(({ DeadLetters }) => DeadLetters),
  deadLetter: () => import('./dead-letters/dead-letter.tsx').then(({ DeadLetter }) => DeadLetter),
  live: () => import('./live/live.tsx').then(({ Live }) => Live),
  audit: () => import('./audit/audit.tsx').then(({ Audit }) => Audit),
  sources: () => import('./sources/sources.tsx').then(({ Sources }) => Sources),
  source: () => import('./sources/source.tsx').then(({ Source }) => Source),
  sourceEvents: () => import('./sources/events.tsx').then(({ SourceEvents }) => SourceEvents),
  computations: () => import('./computations/computations.tsx').then(({ Computations }) => Computations),
  audience: () => import('./computations/computation.tsx').then(({ Audience }) => Audience),
  trait: () => import('./computations/computation.tsx').then(({ Trait }) => Trait),
  deletions: () => import('./deletions/deletions.tsx').then(({ Deletions }) => Deletions),
  deletion: () => import('./deletions/deletion.tsx').then(({ Deletion }) => Deletion),
  suppressions: () => import('./deletions/suppressions.tsx').then(({ Suppressions }) => Suppressions),
  system: () => import('./system/system.tsx').then(({ System }) => System),
  history: () => import('./system/history.tsx').then(({ History }) => History),
  settingsFile: () => import('./system/settings-file.tsx').then(({ SettingsFile }) => SettingsFile),
  alerts: () => import('./system/alerts.tsx').then(({ Alerts }) => Alerts),
  tokens: () => import('./system/tokens.tsx').then(({ Tokens }) => Tokens),
}
