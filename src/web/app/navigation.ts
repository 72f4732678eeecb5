import type { PageName } from '../../console/page-paths.ts'
import type { IconName } from '../components/icon.tsx'

interface NavigationEntry {
  page: PageName
  label: string
  icon: IconName
  /** Pages that belong to it. */
  includes?: readonly PageName[]
}

/** What the navigation shows, in the order in which people look. */
export const navigation: readonly NavigationEntry[] = [
  { page: 'overview', label: 'Overview', icon: 'overview' },
  { page: 'destinations', label: 'Destinations', icon: 'destinations', includes: ['destination'] },
  { page: 'find', label: 'Find a call', icon: 'find' },
  { page: 'deadLetters', label: 'Dead letters', icon: 'letters', includes: ['deadLetter'] },
  { page: 'live', label: 'Live', icon: 'live' },
  { page: 'audit', label: 'Audit', icon: 'audit' },
  { page: 'sources', label: 'Sources', icon: 'sources' },
  { page: 'computations', label: 'Audiences and traits', icon: 'people', includes: ['audience', 'trait'] },
  { page: 'deletions', label: 'Deletions', icon: 'erase', includes: ['deletion', 'suppressions'] },
  { page: 'system', label: 'System', icon: 'system', includes: ['history', 'tokens'] },
]
