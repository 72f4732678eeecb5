import { createHash, randomBytes } from 'node:crypto'
import { z } from 'zod'
import { operation, type Operation } from '../operation.ts'
import { page, pageOf, pageQuery } from '../schemas.ts'
import { maxReach, reachPattern, type Reach } from '../../core/access/reach.ts'
import { roles } from '../../core/access/roles.ts'
import type { AccessToken } from '../../core/access/tokens.ts'
import { type SettingKind, settingIn, idParams } from '../settings/setting-operations.ts'

/** By which scanners for leaked secrets can find it. */
const prefix = 'postrider_'

/** 32 random bytes: nobody guesses it. */
export const newToken = (): string => prefix + randomBytes(32).toString('base64url')

/** Whether it may be one that `newToken` made. */
export const isTokenForm = (text: string): boolean => /^postrider_[\w-]{43}$/.test(text)

/** What is kept of a token (AccessToken.hash). */
export const hashOfToken = (token: string, only: Reach = null): string =>
  createHash('sha256')
    .update(only === null ? token : [token, ...only].join('\n'))
    .digest('base64url')

/** A token as it is shown: neither itself nor its hash. */
const tokenSchema = z
  .object({
    id: z.string().describe('Its name: the actor of what is done with it.'),
    role: z.enum(roles),
    only: z
      .array(z.string())
      .max(maxReach)
      .nullable()
      .describe('The sources and destinations that it is for; null for all.'),
    createdAt: z.iso.datetime(),
    revokedAt: z.iso.datetime().nullable().describe('Null while it works.'),
  })
  .meta({ id: 'Token' })

export type TokenView = z.output<typeof tokenSchema>

export const tokenView = ({ id, role, only, createdAt, revokedAt }: AccessToken): TokenView => ({
  id,
  role,
  only: only && [...only],
  createdAt: new Date(createdAt).toISOString(),
  revokedAt: revokedAt === null ? null : new Date(revokedAt).toISOString(),
})

export const tokenKind = {
  one: 'token',
  schema: tokenSchema,
  all: ({ tokens }) => tokens,
  view: tokenView,
} as const satisfies SettingKind<AccessToken, TokenView>

const createBody = z
  .strictObject({
    id: z.string().describe('Its name: 1-64 of a-z, 0-9, "_" and "-"; never reused.'),
    role: z.enum(roles),
    only: z
      .array(z.string().regex(reachPattern))
      .min(1)
      .max(maxReach)
      .optional()
      .describe(
        'Only these sources and destinations, by id; `shop-*` for all that begin so. Not for an admin.',
      ),
  })
  .meta({ id: 'TokenCreate' })

export const createdTokenSchema = z
  .object({ ...tokenKind.schema.shape, token: z.string().describe('Shown here and never again.') })
  .meta({ id: 'CreatedToken' })

export const tokenOperations: Operation[] = [
  operation({
    id: 'listTokens',
    route: 'GET /tokens',
    command: 'tokens list',
    summary: 'All tokens, in the order of their creation, revoked ones too',
    role: 'admin',
    query: pageQuery,
    success: { status: 200, description: 'A page of them.', schema: pageOf(tokenKind.schema) },
    async handle({ query }, { settings: { state } }) {
      return page([...state.tokens.values()], query, tokenKind.view)
    },
  }),
  // Not idempotent by a key: the token is kept nowhere, and could not be shown again.
  operation({
    id: 'createToken',
    route: 'POST /tokens',
    command: 'tokens create',
    flags: { id: 'name' },
    summary: 'Add a token; its text is shown in this answer only',
    role: 'admin',
    body: createBody,
    refusals: [409],
    success: { status: 201, description: 'The token.', schema: createdTokenSchema },
    async handle({ body: { id, role, only = null } }, { settings, now }) {
      const token = newToken()
      const hash = hashOfToken(token, only)
      const state = await settings.execute({ type: 'create_token', id, role, only, hash, at: now() })
      const view = tokenKind.view(settingIn(tokenKind, state, id))
      return { status: 201, headers: { Location: `/api/v1/tokens/${id}` }, body: { ...view, token } }
    },
  }),
  operation({
    id: 'showToken',
    route: 'GET /tokens/{id}',
    command: 'tokens show',
    summary: 'One token, without its text',
    role: 'admin',
    params: idParams,
    success: { status: 200, description: 'The token.', schema: tokenKind.schema },
    async handle({ params: { id } }, { settings: { state } }) {
      return { status: 200, body: tokenKind.view(settingIn(tokenKind, state, id)) }
    },
  }),
  operation({
    id: 'revokeToken',
    route: 'POST /tokens/{id}/revoke',
    command: 'tokens revoke',
    summary: 'Refuse it from now on',
    role: 'admin',
    params: idParams,
    success: { status: 200, description: 'The token.', schema: tokenKind.schema },
    async handle({ params: { id } }, { settings, now }) {
      const state = await settings.execute({ type: 'revoke_token', id, at: now() })
      return { status: 200, body: tokenKind.view(settingIn(tokenKind, state, id)) }
    },
  }),
]
