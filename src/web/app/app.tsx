import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Failure } from '../components/notices.tsx'
import type { PageProps } from '../pages/page-props.ts'
import { pages } from '../pages/pages.ts'
import { address, currentPage, go } from './address.ts'
import { Login } from './login.tsx'
import { NoSuchPage } from './no-such-page.tsx'
import { findSession, session } from './session.ts'
import { Shell } from './shell.tsx'

export function App() {
  const { value } = session
  const page = currentPage.value
  const isLoginPage = page?.page === 'login'
  useEffect(() => {
    if (value.is === 'begun' && isLoginPage) go('/', { replace: true })
  }, [value.is, isLoginPage])

  if (value.is === 'asking') return null
  if (value.is === 'failed')
    return (
      <main class="login">
        <div class="login-card">
          <Failure failure={value.failure} retry={() => void findSession()} />
        </div>
      </main>
    )
  if (value.is === 'none') return <Login why={value.why} />
  if (isLoginPage) return null
  return (
    <Shell>
      {/* The same page of another thing begins from nothing. */}
      {page && page.page !== 'login' ? (
        <LoadedPage key={address.value.path} name={page.page} params={page.params} />
      ) : (
        <NoSuchPage />
      )}
    </Shell>
  )
}

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
