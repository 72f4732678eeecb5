// Where the page is: path and query of the URL, which is all that says what is shown. Filters live in the query.
import { computed, signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { companyLoginPath, pageAt, type PageName } from '../../console/page-paths.ts'
import type { IconName } from '../components/icon.tsx'

const read = () => ({ path: location.pathname, search: location.search })

export const address = signal(read())
export const currentPage = computed(() => pageAt(address.value.path))
export const query = computed(() => new URLSearchParams(address.value.search))

/** What would be lost with this page, as “the changes to crm”; null: nothing. */
const unsaved = signal<string | null>(null)

/** While `what` is not null, whoever leaves this page is asked first. */
export function useUnsaved(what: string | null): void {
  useEffect(() => {
    unsaved.value = what
    return () => void (unsaved.value = null)
  }, [what])
}

/** It was saved, or is not wanted: the page may be left. */
export const forgetUnsaved = (): void => void (unsaved.value = null)

const mayLeave = (): boolean =>
  unsaved.value === null || confirm(`Leave this page? ${unsaved.value} will be lost.`)

/** Goes to a path of the page. With `replace` the back button does not come back to where it was. */
export function go(to: string, { replace = false } = {}): void {
  if (to === location.pathname + location.search || !mayLeave()) return
  if (!replace) keepPlace()
  history[replace ? 'replaceState' : 'pushState'](replace ? history.state : null, '', to)
  const before = address.value.path
  address.value = read()
  if (address.value.path !== before) scrollTo(0, 0)
}

const keepPlace = (): void => history.replaceState({ scrolledTo: scrollY }, '')

/** A list is read again when one comes back to it: a moment later it is as long as it was. In ms. */
const listedWithinMs = 3_000

/** To where one was in the page, unless somebody scrolls. */
function backToPlace(): void {
  const { scrolledTo = 0 } = (history.state ?? {}) as { scrolledTo?: number }
  const until = performance.now() + listedWithinMs
  const stop = new AbortController()
  for (const type of ['wheel', 'keydown', 'pointerdown', 'touchstart'])
    addEventListener(type, () => stop.abort(), { signal: stop.signal, passive: true })
  const at = address.value
  const step = () => {
    if (stop.signal.aborted || address.value !== at) return
    scrollTo(0, scrolledTo)
    // Where the console is slow it is loading for longer.
    const mayGrow = performance.now() < until || document.querySelector('main .loading') !== null
    if (scrollY < scrolledTo - 1 && mayGrow) requestAnimationFrame(step)
    else stop.abort()
  }
  step()
}

/** Changes parameters of the query; null or empty takes one away. */
export function setQuery(changes: Record<string, string | null>, { replace = true } = {}): void {
  const params = new URLSearchParams(location.search)
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === '') params.delete(name)
    else params.set(name, value)
  }
  const search = params.toString()
  go(location.pathname + (search === '' ? '' : `?${search}`), { replace })
}

/** Links of the page change its address; all others are left to the browser. */
export function followLinks(): void {
  history.scrollRestoration = 'manual'
  addEventListener('popstate', () => {
    if (!mayLeave()) {
      const { path, search } = address.value
      history.pushState(null, '', path + search)
      return
    }
    address.value = read()
    backToPlace()
  })
  addEventListener('beforeunload', (event) => {
    if (unsaved.value !== null) event.preventDefault()
  })
  addEventListener('pagehide', keepPlace)
  backToPlace()
  document.addEventListener('click', (event) => {
    const isPlain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey
    const link = event.target instanceof Element ? event.target.closest('a') : null
    if (!link || !isPlain || event.defaultPrevented || link.target !== '' || link.hasAttribute('download'))
      return
    if (link.origin !== location.origin || link.pathname.startsWith('/api/')) return
    if (link.pathname === companyLoginPath) return
    // A place within this page is the browser's.
    if (link.hash !== '' && link.pathname === location.pathname && link.search === location.search) return
    event.preventDefault()
    go(link.pathname + link.search)
  })
}

interface NavigationEntry {
  page: PageName
  label: string
  icon: IconName
  /** Pages that belong to it. */
  includes?: readonly PageName[]
  /** It is about the whole deployment, and shown to nobody who is limited to a part. */
  isOfAll?: true
}

/** What the navigation shows, in the order in which people look. */
export const navigation: readonly NavigationEntry[] = [
  { page: 'overview', label: 'Overview', icon: 'overview', includes: ['begin'] },
  {
    page: 'destinations',
    label: 'Destinations',
    icon: 'destinations',
    includes: ['destination', 'newDestination'],
  },
  { page: 'find', label: 'Find a call', icon: 'find' },
  { page: 'deadLetters', label: 'Dead letters', icon: 'letters', includes: ['deadLetter'] },
  { page: 'live', label: 'Live', icon: 'live' },
  { page: 'audit', label: 'Audit', icon: 'audit', isOfAll: true },
  { page: 'sources', label: 'Sources', icon: 'sources', includes: ['source', 'sourceEvents'] },
  { page: 'computations', label: 'Audiences and traits', icon: 'people', includes: ['audience', 'trait'] },
  {
    page: 'deletions',
    label: 'Deletions',
    icon: 'erase',
    includes: ['deletion', 'suppressions'],
    isOfAll: true,
  },
  {
    page: 'system',
    label: 'System',
    icon: 'system',
    includes: ['history', 'settingsFile', 'alerts', 'tokens'],
    isOfAll: true,
  },
]
