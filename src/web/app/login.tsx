import { useEffect, useState } from 'preact/hooks'
import { companyLoginPath } from '../../console/page-paths.ts'
import { ApiFailure, request } from '../api/request.ts'
import { TextField } from '../components/fields.tsx'
import { sentence } from '../components/notices.tsx'
import { Logo } from './shell.tsx'
import { address } from './address.ts'
import { logIn } from './session.ts'

/** Asks for a token, or leads to the company's own login. Where the page was stays in the URL. */
export function Login({ why }: { why: string | null }) {
  const [token, setToken] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const [isAsking, setAsking] = useState(false)
  const company = useCompany()
  const submit = async (event: Event) => {
    event.preventDefault()
    if (token.trim() === '') return setFault('Give a token.')
    setAsking(true)
    try {
      await logIn({ token: token.trim() })
    } catch (error) {
      if (!(error instanceof ApiFailure)) throw error
      setFault(
        error.status === 401
          ? 'This token does not work: it is wrong, or was revoked.'
          : sentence(error.message),
      )
      setAsking(false)
    }
  }
  return (
    <main class="login">
      <div class="login-card">
        <Logo />
        <h1>Log in</h1>
        {why && (
          <p class="login-why" role="status">
            {why}
          </p>
        )}
        {company !== null && (
          <>
            <a class="button button-primary button-wide" href={companyLoginAt()}>
              Log in with {company}
            </a>
            <p class="login-or">or by a token</p>
          </>
        )}
        <form onSubmit={submit}>
          <TextField
            label="Token"
            type="password"
            name="token"
            autocomplete="current-password"
            autofocus
            value={token}
            change={setToken}
            fault={fault ?? undefined}
            hint={
              <>
                ADMIN_TOKEN, or one that <code>postrider tokens create</code> printed. After{' '}
                <code>npm start</code> it is in <code>.postrider/dev.env</code>.
              </>
            }
          />
          <button
            type="submit"
            class={`button button-wide${company === null ? ' button-primary' : ''}`}
            disabled={isAsking}
          >
            {isAsking ? 'Logging in …' : 'Log in'}
          </button>
        </form>
      </div>
    </main>
  )
}

/** The issuer by whom people can log in; null where there is none, or nobody can say so now. */
function useCompany(): string | null {
  const [company, setCompany] = useState<string | null>(null)
  useEffect(() => {
    request('GET /session/ways').then(
      ({ data }) => setCompany(data.company),
      () => {},
    )
  }, [])
  return company
}

const companyLoginAt = (): string => {
  const { path, search } = address.value
  return `${companyLoginPath}?${new URLSearchParams({ to: path + search })}`
}
