import { query } from '../app/address.ts'

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
