import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { pages } from '../pages/pages.ts'
import type { PageProps } from '../pages/page-props.ts'

type Name = keyof typeof pages

const loaded = new Map<Name, ComponentType<PageProps>>()
const reloadedKey = 'reloaded for'

/** A page, whose script is loaded when it is first shown. */
export function LoadedPage({ name, params }: PageProps & { name: Name }) {
  const [, setCount] = useState(0)
  const Page = loaded.get(name)
  useEffect(() => {
    if (Page) return
    let isOver = false
    pages[name]().then(
      (page) => {
        loaded.set(name, page)
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
