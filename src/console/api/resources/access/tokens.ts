import { z } from 'zod'
import { roles } from '../../../../core/access/roles.ts'
import { settingIn } from '../../../setting-kind.ts'
import { hashOfToken, newToken, tokenKind } from '../../../tokens.ts'
import { operation, type Operation } from '../../operation.ts'
import { page, pageOf, pageQuery } from '../../paging.ts'
import { idParams } from '../../setting-operations.ts'

const createBody = z
  .strictObject({
    id: z.string().describe('Its name: 1-64 of a-z, 0-9, "_" and "-"; never reused.'),
    role: z.enum(roles),
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
    async handle({ body: { id, role } }, { settings, now }) {
      const token = newToken()
      const hash = hashOfToken(token)
      const state = await settings.execute({ type: 'create_token', id, role, hash, at: now() })
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
