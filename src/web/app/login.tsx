import { useState } from 'preact/hooks'
import { ApiFailure } from '../api/request.ts'
import { TextField } from '../components/fields.tsx'
import { sentence } from '../components/notices.tsx'
import { Logo } from './shell.tsx'
import { logIn } from './session.ts'

/** Asks for a token. Where the page was stays in the URL. */
export function Login({ why }: { why: string | null }) {
  const [token, setToken] = useState('')
  const [fault, setFault] = useState<string | null>(null)
  const [isAsking, setAsking] = useState(false)
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
          <button type="submit" class="button button-primary button-wide" disabled={isAsking}>
            {isAsking ? 'Logging in …' : 'Log in'}
          </button>
        </form>
      </div>
    </main>
  )
}
