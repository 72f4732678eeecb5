/**
 * The paths of the web page: real URLs, so that they can be linked to, reloaded and bookmarked. The console answers each
 * with the page, and any other path with 404. `:id` is one part of a path, percent-encoded.
 */
export const pagePaths = {
  overview: '/',
  begin: '/begin',
  login: '/login',
  destinations: '/destinations',
  // Not below /destinations: each path there is an id.
  newDestination: '/new-destination',
  destination: '/destinations/:id',
  find: '/find',
  deadLetters: '/dead-letters',
  deadLetter: '/dead-letters/:id',
  live: '/live',
  audit: '/audit',
  sources: '/sources',
  source: '/sources/:id',
  sourceEvents: '/sources/:id/events',
  computations: '/audiences',
  audience: '/audiences/:id',
  trait: '/traits/:id',
  deletions: '/deletions',
  deletion: '/deletions/:id',
  suppressions: '/suppressions',
  system: '/system',
  history: '/system/history',
  settingsFile: '/system/settings',
  alerts: '/system/alerts',
  tokens: '/system/tokens',
} as const

/** Not of the page: begins a login by the company's own. */
export const companyLoginPath = '/login/start'

export type PageName = keyof typeof pagePaths

export interface PageAddress {
  page: PageName
  params: Record<string, string>
}

/** Null where there is no such page. */
export function pageAt(path: string): PageAddress | null {
  for (const [page, pattern] of Object.entries(pagePaths) as [PageName, string][]) {
    const params = matched(pattern, path)
    if (params) return { page, params }
  }
  return null
}

/** A path of a page, with these values in it. */
export function pathTo(page: PageName, params: Record<string, string> = {}): string {
  return pagePaths[page].replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name]!))
}

/** A path with a query, of a page without values in its path. */
export const linkTo = (page: PageName, query: Record<string, string>): string =>
  `${pagePaths[page]}?${new URLSearchParams(query)}`

function matched(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split('/')
  const given = path.replace(/(?<=.)\/$/, '').split('/')
  if (wanted.length !== given.length) return null
  const params: Record<string, string> = {}
  for (const [index, part] of wanted.entries()) {
    if (!part.startsWith(':')) {
      if (part !== given[index]) return null
      continue
    }
    const value = decoded(given[index]!)
    if (value === null || value === '') return null
    params[part.slice(1)] = value
  }
  return params
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}
