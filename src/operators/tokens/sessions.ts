import { z } from 'zod'
import { maxReach } from '../../core/access/reach.ts'
import { roles } from '../../core/access/roles.ts'
import { wrongField } from '../check.ts'
import { operation, type Caller, type Operation } from '../operation.ts'

export const sessionSchema = z
  .object({
    name: z
      .string()
      .describe(
        'Of the token; `ADMIN_TOKEN` is the one that the console was started with. `oidc:ada@example.com` is a person who logged in by the company’s own.',
      ),
    role: z.enum(roles),
    only: z
      .array(z.string())
      .max(maxReach)
      .nullable()
      .describe('The sources and destinations that it is for; null for all.'),
  })
  .meta({ id: 'Session' })

const sessionView = ({ name, role, only }: Caller) => ({ name, role, only: only && [...only] })

const startedSchema = z
  .object({ ...sessionSchema.shape, expiresAt: z.iso.datetime() })
  .meta({ id: 'StartedSession' })

export const loginWaysSchema = z
  .object({
    company: z
      .string()
      .nullable()
      .describe('The host of the issuer by whom people can log in, at `/login/start`; null for tokens only.'),
  })
  .meta({ id: 'LoginWays' })

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
    summary: 'Who sends this request, by its token or its session: name and role',
    role: 'reader',
    forLimited: 'part',
    needsNoKafka: true,
    success: { status: 200, description: 'Who it is.', schema: sessionSchema },
    async handle({ caller }) {
      return { status: 200, body: sessionView(caller) }
    },
  }),
  operation({
    id: 'showLoginWays',
    route: 'GET /session/ways',
    command: null,
    summary: 'How a browser can log in, beside a token',
    role: 'reader',
    isOpen: true,
    needsNoKafka: true,
    success: { status: 200, description: 'The ways.', schema: loginWaysSchema },
    async handle({ session }) {
      return { status: 200, body: { company: session.companyLogin } }
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
    // It gives nothing but who one is: each request behind it has its token looked at by itself.
    needsNoKafka: true,
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
        body: { ...sessionView(caller), expiresAt: new Date(expiresAt).toISOString() },
      }
    },
  }),
  operation({
    id: 'endSession',
    route: 'DELETE /session',
    command: null,
    summary: 'Log a browser out: its cookie is taken away',
    role: 'reader',
    forLimited: 'part',
    needsNoKafka: true,
    success: { status: 200, description: 'Whose session it was.', schema: sessionSchema },
    async handle({ caller, session }) {
      return { status: 200, headers: { 'Set-Cookie': session.endingCookie() }, body: sessionView(caller) }
    },
  }),
]
