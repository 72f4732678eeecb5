import { z } from 'zod'
import { roles } from '../../core/access/roles.ts'
import { wrongField } from '../check.ts'
import { operation, type Operation } from '../operation.ts'

export const sessionSchema = z
  .object({
    name: z.string().describe('Of the token; `ADMIN_TOKEN` is the one that the console was started with.'),
    role: z.enum(roles),
  })
  .meta({ id: 'Session' })

const startedSchema = z
  .object({ ...sessionSchema.shape, expiresAt: z.iso.datetime() })
  .meta({ id: 'StartedSession' })

const loginBody = z
  .strictObject({
    token: z.string().max(4_096).optional(),
    code: z.string().max(100).optional().describe('Of a link that logs in once, as `npm start` prints it.'),
  })
  .meta({ id: 'Login' })

export const sessionOperations: Operation[] = [
  operation({
    id: 'showSession',
    route: 'GET /session',
    command: null,
    summary: 'The token that this request carries, itself or by its session: its name and role',
    role: 'reader',
    success: { status: 200, description: 'Whose token it is.', schema: sessionSchema },
    async handle({ caller: { name, role } }) {
      return { status: 200, body: { name, role } }
    },
  }),
  operation({
    id: 'beginSession',
    route: 'POST /session',
    command: null,
    summary: 'Log a browser in: a token, or a code that works once, for a cookie',
    description:
      'The cookie stands for the token for 12 hours, on every console with the same ADMIN_TOKEN. It ends when the token is ' +
      'revoked, or when ADMIN_TOKEN changes.',
    role: 'reader',
    isOpen: true,
    body: loginBody,
    refusals: [429],
    success: {
      status: 200,
      description: 'Whose session it is; the cookie is in Set-Cookie.',
      schema: startedSchema,
    },
    async handle({ body: { token, code }, session }) {
      if ((token === undefined) === (code === undefined)) throw wrongField('token', 'give a token or a code')
      const started = await session.begin(token === undefined ? { code: code! } : { token })
      const { caller, cookie, expiresAt } = started
      return {
        status: 200,
        headers: { 'Set-Cookie': cookie },
        body: { name: caller.name, role: caller.role, expiresAt: new Date(expiresAt).toISOString() },
      }
    },
  }),
  operation({
    id: 'endSession',
    route: 'DELETE /session',
    command: null,
    summary: 'Log a browser out: its cookie is taken away',
    role: 'reader',
    success: { status: 200, description: 'Whose session it was.', schema: sessionSchema },
    async handle({ caller: { name, role }, session }) {
      return { status: 200, headers: { 'Set-Cookie': session.endingCookie() }, body: { name, role } }
    },
  }),
]
