import { useEffect } from 'preact/hooks'
import { Failure } from '../components/notices.tsx'
import { address, currentPage, go } from './address.ts'
import { LoadedPage } from './loaded-page.tsx'
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
