import type { ComponentChildren } from 'preact'
import { pathTo, type PageName } from '../../console/page-paths.ts'
import type { Live } from '../api/live.ts'
import { query, currentPage } from '../app/address.ts'
import { Failure, Loading, Stale } from './notices.tsx'

/** What was loaded; before that, that it is loading or why it cannot be. Keeps what there is while asking again fails. */
export function Loaded<T>({
  live,
  what,
  children,
}: {
  live: Live<T>
  /** For people: `destinations`. */
  what: string
  children: (data: T) => ComponentChildren
}) {
  const { data, failure, loadedAt, reload } = live
  if (data === null) return failure ? <Failure failure={failure} retry={reload} /> : <Loading what={what} />
  return (
    <>
      <Stale failure={failure} loadedAt={loadedAt} />
      {children(data)}
    </>
  )
}

/** Views of one page, as links: the view is in the URL. The first is the one without a parameter. */
export function Views<T extends string>({
  label,
  name,
  value,
  views,
}: {
  label: string
  /** Of the query parameter. */
  name: string
  value: T
  views: readonly (readonly [value: T, text: string])[]
}) {
  const hrefOf = (view: T, isFirst: boolean) => {
    const params = new URLSearchParams(query.value)
    if (isFirst) params.delete(name)
    else params.set(name, view)
    const search = params.toString()
    return location.pathname + (search === '' ? '' : `?${search}`)
  }
  return (
    <nav class="tabs" aria-label={label}>
      {views.map(([view, text], index) => (
        <a key={view} href={hrefOf(view, index === 0)} aria-current={view === value ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  )
}

/** Links between pages that belong together. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly { page: PageName; text: string }[] }) {
  const here = currentPage.value?.page
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map(({ page, text }) => (
        <a key={page} href={pathTo(page)} aria-current={page === here ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  )
}
