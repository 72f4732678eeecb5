import { signal } from '@preact/signals'
import type { LoginFault } from '../../core/access/company-roles.ts'
import type { Reach } from '../../core/access/reach.ts'
import { includesRole, type Role } from '../../core/access/roles.ts'
import { forgetAnswers } from '../api/live.ts'
import { ApiFailure, request, whenUnauthorized } from '../api/request.ts'
import type { SessionAnswer } from '../api/routes.ts'

/** Whose session it is. `asking`: not known yet. `none`: nobody is logged in. `failed`: it cannot be found out. */
export type SessionState =
  | { is: 'asking' }
  | { is: 'none'; why: string | null }
  | { is: 'failed'; failure: ApiFailure }
  | { is: 'begun'; name: string; role: Role; only: Reach }

export const session = signal<SessionState>({ is: 'asking' })

/** Whether the holder of the session may do what takes this role. The API refuses it all the same. */
export function may(needed: Role): boolean {
  const { value } = session
  return value.is === 'begun' && includesRole(value.role, needed)
}

/** Whether the session is for some sources and destinations only. */
export const isLimited = (): boolean => session.value.is === 'begun' && session.value.only !== null

/** Finds out whose session it is. A link that logs in has its code in the fragment, which is sent to no server. */
export async function findSession(): Promise<void> {
  whenUnauthorized(() => {
    if (session.value.is !== 'begun') return
    forgetAnswers()
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
  const fault = /^#login=(\w+)$/.exec(location.hash)?.[1]
  if (fault !== undefined) history.replaceState(null, '', location.pathname + location.search)
  await attempt(findByCookie)
  if (fault !== undefined && session.value.is === 'none' && Object.hasOwn(faultWords, fault))
    session.value = { is: 'none', why: faultWords[fault as LoginFault] }
}

/** Why a login by the company's own did not come about, where the console said so in the fragment. */
const faultWords: Record<LoginFault, string> = {
  away: 'Your company’s login cannot be used right now; the console’s log says why. A token logs in all the same.',
  refused: 'Your company’s login did not let you in.',
  wrong:
    'The login took too long, or is not the one that was begun in this browser. Please begin it once more.',
  no_role: 'Your company’s login knows you, but you have no role here. Ask whoever runs this console.',
}

const findByCookie = async () => begun((await request('GET /session')).data)

/** Throws ApiFailure. */
export async function logIn(given: { token: string } | { code: string }): Promise<void> {
  begun((await request('POST /session', { body: given })).data)
}

/** Throws ApiFailure. */
export async function logOut(): Promise<void> {
  await request('DELETE /session')
  forgetAnswers()
  session.value = { is: 'none', why: null }
}

function begun({ name, role, only }: SessionAnswer): void {
  session.value = { is: 'begun', name, role, only }
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
