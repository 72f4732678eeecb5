import { signal } from '@preact/signals'
import { includesRole, type Role } from '../../core/access/roles.ts'
import { ApiFailure, request, whenUnauthorized } from '../api/request.ts'
import type { SessionAnswer } from '../api/routes.ts'

/** Whose session it is. `asking`: not known yet. `none`: nobody is logged in. `failed`: it cannot be found out. */
export type SessionState =
  | { is: 'asking' }
  | { is: 'none'; why: string | null }
  | { is: 'failed'; failure: ApiFailure }
  | { is: 'begun'; name: string; role: Role }

export const session = signal<SessionState>({ is: 'asking' })

/** Whether the holder of the session may do what takes this role. The API refuses it all the same. */
export function may(needed: Role): boolean {
  const { value } = session
  return value.is === 'begun' && includesRole(value.role, needed)
}

/** Finds out whose session it is. A link that logs in has its code in the fragment, which is sent to no server. */
export async function findSession(): Promise<void> {
  whenUnauthorized(() => {
    if (session.value.is === 'begun')
      session.value = { is: 'none', why: 'Your session has ended. Log in again.' }
  })
  const code = /^#code=([\w-]+)$/.exec(location.hash)?.[1]
  if (code !== undefined) {
    history.replaceState(null, '', location.pathname + location.search)
    const failure = await attempt(() => logIn({ code }))
    if (!failure) return
    // Whoever followed it before may be logged in still.
    await attempt(findByCookie)
    if (session.value.is === 'none')
      session.value = { is: 'none', why: `The link does not log in: ${failure.message}.` }
    return
  }
  await attempt(findByCookie)
}

const findByCookie = async () => begun((await request('GET /session')).data)

/** Throws ApiFailure. */
export async function logIn(given: { token: string } | { code: string }): Promise<void> {
  begun((await request('POST /session', { body: given })).data)
}

/** Throws ApiFailure. */
export async function logOut(): Promise<void> {
  await request('DELETE /session')
  session.value = { is: 'none', why: null }
}

function begun({ name, role }: SessionAnswer): void {
  session.value = { is: 'begun', name, role }
}

/** Null when it worked. */
async function attempt(work: () => Promise<void>): Promise<ApiFailure | null> {
  try {
    await work()
    return null
  } catch (error) {
    if (!(error instanceof ApiFailure)) throw error
    session.value = error.status === 401 ? { is: 'none', why: null } : { is: 'failed', failure: error }
    return error
  }
}
