import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { ApiFailure, request } from '../api/request.ts'
import { Failure } from '../components/notices.tsx'
import type { PageProps } from '../pages/page-props.ts'
import { pages } from '../pages/pages.ts'
import { address, currentPage, go } from './address.ts'
import { AwayNote } from './away-note.tsx'
import { Login } from './login.tsx'
import { NoSuchPage } from './no-such-page.tsx'
import { findSession, session } from './session.ts'
import { Logo, Shell } from './shell.tsx'

/** Between two tries to find out whose session it is, in ms. */
const againMs = 5_000

export function App() {
  const { value } = session
  const page = currentPage.value
  const isLoginPage = page?.page === 'login'
  useEffect(() => {
    if (value.is === 'begun' && isLoginPage) go('/', { replace: true })
  }, [value.is, isLoginPage])

  const isFailed = value.is === 'failed'
  useEffect(() => {
    if (!isFailed) return
    const timer = window.setInterval(() => void findSession(), againMs)
    return () => window.clearInterval(timer)
  }, [isFailed])

  if (value.is === 'asking') return null
  if (value.is === 'failed')
    return (
      <main class="login">
        <div class="login-card">
          <Logo />
          <AwayNote />
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
  const [failure, setFailure] = useState<ApiFailure | null>(null)
  const [times, setTimes] = useState(0)
  const Page = loaded.get(name)
  useEffect(() => {
    if (Page) return
    let isOver = false
    setFailure(null)
    loadPage(name).then(
      () => {
        sessionStorage.removeItem(reloadedKey)
        if (!isOver) setCount((count) => count + 1)
      },
      async (error: unknown) => {
        const away = await consoleAway()
        if (isOver) return
        // The browser's own page in place of this one would say less.
        if (away) return setFailure(away)
        // The console was upgraded since this page was opened: its scripts have other names. Once, so that it ends.
        if (sessionStorage.getItem(reloadedKey) === name) throw error
        sessionStorage.setItem(reloadedKey, name)
        location.reload()
      },
    )
    return () => void (isOver = true)
  }, [name, times])
  if (Page) return <Page params={params} />
  return failure && <Failure failure={failure} retry={() => setTimes(times + 1)} />
}

/** Null while it answers. */
async function consoleAway(): Promise<ApiFailure | null> {
  try {
    await request('GET /session/ways')
    return null
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error
    return error.code === 'unreachable' ? error : null
  }
}
