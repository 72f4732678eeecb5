import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { pages } from '../pages/pages.ts'
import type { PageProps } from '../pages/page-props.ts'

type Name = keyof typeof pages
type Page = ComponentType<PageProps>

const loaded = new Map<Name, Page>()
const loading = new Map<Name, Promise<Page>>()
const reloadedKey = 'reloaded for'

/** Loads the script of a page, unless it is loaded or on its way. */
export function loadPage(name: Name): Promise<Page> {
  const known = loading.get(name)
  if (known) return known
  const page = pages[name]()
  loading.set(name, page)
  page.then(
    (found) => void loaded.set(name, found),
    () => void loading.delete(name),
  )
  return page
}

/** A page, whose script is loaded when it is first shown. */
export function LoadedPage({ name, params }: PageProps & { name: Name }) {
  const [, setCount] = useState(0)
  const Page = loaded.get(name)
  useEffect(() => {
    if (Page) return
    let isOver = false
    loadPage(name).then(
      () => {
        sessionStorage.removeItem(reloadedKey)
        if (!isOver) setCount((count) => count + 1)
      },
      (error: unknown) => {
        // The console was upgraded since this page was opened: its scripts have other names. Once, so that it ends.
        if (sessionStorage.getItem(reloadedKey) === name) throw error
        sessionStorage.setItem(reloadedKey, name)
        location.reload()
      },
    )
    return () => void (isOver = true)
  }, [name])
  return Page ? <Page params={params} /> : null
}
